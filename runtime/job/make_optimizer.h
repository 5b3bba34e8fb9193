// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/nn/parameter.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::job {

class Optimizer;

/// The optimizer that the job names, for these parameters. Throws FieldError with the job's field, "optimizer.sgd.lr",
/// for an option out of range, a group that matches no parameter, and where no kind is named.
std::unique_ptr<optim::Optimizer> make_optimizer(const Optimizer& optimizer,
                                                 const std::vector<nn::Parameter>& parameters);

}  // namespace lockstep::job
