// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/adagrad.h"

#include "runtime/kernels/backend.h"

namespace lockstep::optim {

Adagrad::Adagrad(std::vector<nn::Parameter> parameters, const AdagradOptions& adagrad, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), adagrad, options),
      rule_{.lr_decay = adagrad.lr_decay, .epsilon = adagrad.epsilon, .decoupled = adagrad.adagrad_w_mode},
      initial_accumulator_value_(adagrad.initial_accumulator_value) {}

void Adagrad::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).adagrad_step(slice, rule_, scalars, in_slice(sum_));
}

std::unique_ptr<Optimizer> adagrad(std::vector<nn::Parameter> parameters, const AdagradOptions& options,
                                   const OptimizerOptions& more) {
  return std::make_unique<Adagrad>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
