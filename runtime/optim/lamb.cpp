// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/lamb.h"

#include "runtime/kernels/arena.h"

namespace lockstep::optim {

Lamb::Lamb(std::vector<nn::Parameter> parameters, const LambOptions& lamb, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), lamb, without_larc(options)),
      rule_{.beta1 = lamb.beta1,
            .beta2 = lamb.beta2,
            .epsilon = lamb.epsilon,
            .decoupled = lamb.adam_w_mode,
            .bias_correction = lamb.bias_correction,
            .grad_averaging = lamb.grad_averaging},
      use_nvlamb_(lamb.use_nvlamb) {
  if (lamb.max_grad_norm > 0) limit_norm({.max = lamb.max_grad_norm, .epsilon = 0});
}

void Lamb::allocate_state() {
  exp_avg_ = add_state("exp_avg");
  exp_avg_sq_ = add_state("exp_avg_sq");
}

void Lamb::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::ArenaSteps::on(slice.master.device())
      .lamb_step(slice, rule_, scalars, in_slice(exp_avg_), in_slice(exp_avg_sq_));
}

std::unique_ptr<Optimizer> lamb(std::vector<nn::Parameter> parameters, const LambOptions& options,
                                const OptimizerOptions& more) {
  return std::make_unique<Lamb>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
