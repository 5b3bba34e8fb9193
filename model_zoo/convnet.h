// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/build.h"

namespace lockstep::model_zoo {

/// Blocks of convolution, batch norm, activation, pooling and dropout, then a classifier. Samples [H, W, C].
std::unique_ptr<nn::Module> make_convnet(const job::Convnet& config, const ModelInput& input);

}  // namespace lockstep::model_zoo
