// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/build.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace lockstep::model_zoo {

namespace {

std::unique_ptr<nn::Module> make(const MlpOptions& options, const ModelInput& input) {
  return make_mlp(options, input);
}

std::unique_ptr<nn::Module> make(const ConvnetOptions& options, const ModelInput& input) {
  return make_convnet(options, input);
}

std::unique_ptr<nn::Module> make(const ResnetOptions& options, const ModelInput& input) {
  return make_resnet(options, input);
}

std::unique_ptr<nn::Module> make(const GptOptions& options, const ModelInput& input) {
  return make_gpt(options, input);
}

std::unique_ptr<nn::Module> make(const LlamaOptions& options, const ModelInput& input) {
  return make_llama(options, input);
}

std::unique_ptr<nn::Module> make(const Unet3dOptions& options, const ModelInput& input) {
  return make_unet3d(options, input);
}

std::unique_ptr<nn::Module> make(const VitOptions& options, const ModelInput& input) {
  return make_vit(options, input);
}

std::unique_ptr<nn::Module> make(const BertOptions& options, const ModelInput& input) {
  return make_bert(options, input);
}

std::unique_ptr<nn::Module> make(const RegisteredOptions& options, const ModelInput& input) {
  return make_registered(options, input);
}

std::unique_ptr<nn::Module> make(const ModelOptions& options, const ModelInput& input) {
  return std::visit([&input](const auto& kind) { return make(kind, input); }, options);
}

std::string name(const MlpOptions&) { return "mlp"; }

std::string name(const ConvnetOptions&) { return "convnet"; }

std::string name(const ResnetOptions& options) { return "resnet" + std::to_string(options.depth); }

std::string name(const GptOptions&) { return "gpt"; }

std::string name(const LlamaOptions&) { return "llama"; }

std::string name(const Unet3dOptions&) { return "unet3d"; }

std::string name(const VitOptions&) { return "vit"; }

std::string name(const BertOptions&) { return "bert"; }

std::string name(const RegisteredOptions& options) { return options.name; }

}  // namespace

std::unique_ptr<nn::Module> build(const ModelOptions& options, const ModelInput& input, std::uint64_t seed) {
  std::unique_ptr<nn::Module> model = outline(options, input);
  nn::initialize(*model, seed);
  return model;
}

std::unique_ptr<nn::Module> outline(const ModelOptions& options, const ModelInput& input) {
  if (!input.more_inputs.empty() && !std::holds_alternative<RegisteredOptions>(options)) {
    throw FieldError("model",
                     fmt::format("{} takes one input, and the samples of data.train have {}", name_of(options),
                                 input.more_inputs.size() + 1),
                     "Register a model of your own: nn::MultiInputModule.");
  }
  const nn::WithoutValues without_values;
  return make(options, input);
}

std::string name_of(const ModelOptions& options) {
  return std::visit([](const auto& kind) { return name(kind); }, options);
}

}  // namespace lockstep::model_zoo
