// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/build.h"

namespace lockstep::model_zoo {

/// Residual networks (He, Zhang, Ren, Sun: arXiv 1512.03385) of 18, 34, 50, 101 and 152 layers; bottlenecks stride in
/// their 3x3 convolution. Samples [H, W, C].
std::unique_ptr<nn::Module> make_resnet(const job::Resnet& config, const ModelInput& input);

}  // namespace lockstep::model_zoo
