// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/build.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace lockstep::model_zoo {

std::unique_ptr<nn::Module> build(const ModelOptions& options, const ModelInput& input, std::uint64_t seed) {
  std::unique_ptr<nn::Module> model = outline(options, input);
  nn::initialize(*model, seed);
  return model;
}

std::unique_ptr<nn::Module> outline(const ModelOptions& options, const ModelInput& input) {
  const bool takes_more =
      std::holds_alternative<RegisteredOptions>(options) || std::holds_alternative<MlpOptions>(options);
  if (!input.more_inputs.empty() && !takes_more) {
    throw FieldError("model",
                     fmt::format("{} takes one input, and the samples of data.train have {}", name_of(options),
                                 input.more_inputs.size() + 1),
                     "For a table choose mlp, or make all of its columns numbers: csv { one_hot_up_to: 1024 }. For "
                     "other data register a model of your own: nn::MultiInputModule.");
  }
  const nn::WithoutValues without_values;
  return std::visit([&input](const auto& kind) -> std::unique_ptr<nn::Module> { return make_model(kind, input); },
                    options);
}

std::string name_of(const ModelOptions& options) {
  return std::visit(
      []<class Options>(const Options& kind) {
        if constexpr (requires { kind.model_name(); }) {
          return kind.model_name();
        } else if constexpr (requires { kind.name; }) {
          return kind.name;
        } else {
          return std::string(Options::kKind);
        }
      },
      options);
}

}  // namespace lockstep::model_zoo
