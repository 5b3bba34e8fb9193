// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/adam.h"

namespace lockstep::optim {

Adam::Adam(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
           const OptimizerOptions& options, const kernels::AdamOptions& adam)
    : Optimizer(std::move(parameters), std::move(per_parameter), options), adam_(adam) {}

void Adam::allocate_state() {
  exp_avg_ = add_state("exp_avg");
  exp_avg_sq_ = add_state("exp_avg_sq");
}

void Adam::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).adam_step(slice, adam_, scalars, exp_avg_, exp_avg_sq_);
}

}  // namespace lockstep::optim
