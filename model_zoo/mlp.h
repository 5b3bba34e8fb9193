// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/mlp_options.h"
#include "model_zoo/model_input.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Linear layers with activations between them, on flattened samples. Throws FieldError for options without a meaning.
std::unique_ptr<nn::Module> make_model(const MlpOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
