// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "model_zoo/build.h"

namespace lockstep::model_zoo {

/// Linear layers with activations between them, on flattened samples.
std::unique_ptr<nn::Module> make_mlp(const job::Mlp& config, const ModelInput& input);

}  // namespace lockstep::model_zoo
