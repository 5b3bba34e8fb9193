// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model_zoo/build.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Facts in a config.json that are no options of the model.
struct HubFacts {
  ModelInput input = {};                      ///< that the model was built for
  std::string dtype = "float32";              ///< of the weights, as PyTorch calls it
  std::vector<std::string> class_names = {};  ///< in order; none where they are not known
};

/// Throws UsageError for a model that transformers have none of, and for options that theirs does not have.
void require_hub_model(const ModelOptions& options, const ModelInput& input);

/// The config.json with which transformers' from_pretrained() builds `model`, which build() made of `options`: beside
/// to_transformers()'s weights in model.safetensors. Throws as require_hub_model() does.
std::string hub_config_text(const ModelOptions& options, nn::Module& model, const HubFacts& facts);

}  // namespace lockstep::model_zoo
