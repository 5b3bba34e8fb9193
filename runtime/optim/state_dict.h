// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/nn/state_dict.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// The optimizer's state by name: "momentum/dense.weight" and its like, as views, "step/dense.weight", the steps
/// applied to the parameter (int64 [1], a view), and "applied_steps", those of the schedule (int64 [1], a copy). Where
/// it has parameters of several models, each name begins with the model's number, "1/momentum/dense.weight". Throws
/// UsageError before amp::initialize. Waits for a GPU.
nn::StateDict state_dict(const Optimizer& optimizer);

/// nn::load_state_dict() of an optimizer. The learning rate and other options stay those that it was made with.
nn::StateDifferences load_state_dict(Optimizer& optimizer, const nn::StateDict& state, bool strict = true);

}  // namespace lockstep::optim
