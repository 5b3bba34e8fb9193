// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/model_input.h"
#include "model_zoo/resnet_options.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// Residual networks (He, Zhang, Ren, Sun: arXiv 1512.03385): basic blocks up to 34 layers; above 34, bottlenecks that
/// stride in their 3x3 convolution. Samples [H, W, C]. Throws FieldError for options without a meaning.
std::unique_ptr<nn::Module> make_model(const ResnetOptions& options, const ModelInput& input);

}  // namespace lockstep::model_zoo
