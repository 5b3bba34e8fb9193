// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/novograd.h"

#include "runtime/kernels/arena.h"

namespace lockstep::optim {

Novograd::Novograd(std::vector<nn::Parameter> parameters, const NovogradOptions& novograd,
                   const OptimizerOptions& options)
    : Optimizer(std::move(parameters), novograd, without_larc(options)),
      rule_{.beta1 = novograd.beta1,
            .beta2 = novograd.beta2,
            .epsilon = novograd.epsilon,
            .bias_correction = novograd.bias_correction,
            .grad_averaging = novograd.grad_averaging,
            .reg_inside_moment = novograd.reg_inside_moment,
            .max_norm = novograd.norm == NovogradNorm::kLargest,
            .init_zero = novograd.init_zero} {}

void Novograd::allocate_state() {
  exp_avg_ = add_state("exp_avg");
  exp_avg_sq_ = add_parameter_state("exp_avg_sq");
}

void Novograd::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::ArenaSteps::on(slice.master.device()).novograd_step(slice, rule_, scalars, in_slice(exp_avg_), exp_avg_sq_);
}

std::unique_ptr<Optimizer> novograd(std::vector<nn::Parameter> parameters, const NovogradOptions& options,
                                    const OptimizerOptions& more) {
  return std::make_unique<Novograd>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
