// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/lars.h"

#include "runtime/kernels/backend.h"

namespace lockstep::optim {

Lars::Lars(std::vector<nn::Parameter> parameters, const LarsOptions& lars, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), lars, without_larc(options)),
      rule_{.momentum = static_cast<float>(lars.momentum), .nesterov = lars.nesterov, .rate_in_momentum = true} {
  adapt_layers({.trust_coefficient = lars.trust_coefficient, .epsilon = lars.epsilon, .decay_without_norm = true});
}

std::vector<std::string> Lars::state_names() const {
  return rule_.momentum != 0.0f ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void Lars::allocate_state() { momentum_ = rule_.momentum != 0.0f ? add_state("momentum") : Tensor(); }

void Lars::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).sgd_step(slice, rule_, scalars, in_slice(momentum_));
}

std::unique_ptr<Optimizer> lars(std::vector<nn::Parameter> parameters, const LarsOptions& options,
                                const OptimizerOptions& more) {
  return std::make_unique<Lars>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
