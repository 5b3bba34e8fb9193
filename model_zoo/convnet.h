// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/convnet_options.h"
#include "model_zoo/model_input.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Blocks, then a classifier. Samples [H, W, C]. Throws FieldError for options without a meaning, and for blocks that
/// do not fit the samples.
std::unique_ptr<nn::Module> make_model(const ConvnetOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
