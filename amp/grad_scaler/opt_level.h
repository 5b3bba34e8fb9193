// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "amp/grad_scaler/amp_options.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/module.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::amp {

/// Moves the model's parameters into an arena as the opt level asks and binds the optimizer to it. From then on
/// nn::forward() and DistributedDataParallel::forward() run the model at that level. Call it once, before
/// DistributedDataParallel. Throws FieldError for options that contradict each other, UsageError where the model was
/// initialized before or has parameters that are not float32 (half(), bfloat16(), to()), from which no master weights
/// can come; Apex refuses them too.
void initialize(nn::Module& model, optim::Optimizer& optimizer, const AmpOptions& options = {}, Device device = kCpu);

/// initialize() for several models and the optimizers of their parameters. An optimizer may have parameters of several
/// models, and a model may have several optimizers; one that is not trained needs none. Throws also where two models
/// share a parameter, and where an optimizer has a parameter that is in no model; nothing has changed then.
void initialize(const std::vector<nn::Module*>& models, const std::vector<optim::Optimizer*>& optimizers,
                const AmpOptions& options = {}, Device device = kCpu);

}  // namespace lockstep::amp
