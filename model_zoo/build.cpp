// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/build.h"

#include "model_zoo/convnet.h"
#include "model_zoo/mlp.h"
#include "model_zoo/resnet.h"
#include "runtime/tensor/error.h"

namespace lockstep::model_zoo {

namespace {

std::unique_ptr<nn::Module> make(const job::Model& config, const ModelInput& input) {
  switch (config.kind_case()) {
    case job::Model::kMlp:
      return make_mlp(config.mlp(), input);
    case job::Model::kConvnet:
      return make_convnet(config.convnet(), input);
    case job::Model::kResnet:
      return make_resnet(config.resnet(), input);
    case job::Model::KIND_NOT_SET:
      break;
  }
  throw FieldError("model", "none is named", "Name one of mlp, convnet, resnet.");
}

}  // namespace

std::unique_ptr<nn::Module> build(const job::Model& config, const ModelInput& input, std::uint64_t seed) {
  std::unique_ptr<nn::Module> model = make(config, input);
  nn::initialize(*model, seed);
  return model;
}

std::unique_ptr<nn::Module> outline(const job::Model& config, const ModelInput& input) {
  const nn::WithoutValues without_values;
  return make(config, input);
}

}  // namespace lockstep::model_zoo
