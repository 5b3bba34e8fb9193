// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/sgd.h"

#include "runtime/kernels/backend.h"

namespace lockstep::optim {

Sgd::Sgd(std::vector<nn::Parameter> parameters, const SgdOptions& sgd, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), sgd, options),
      rule_{.momentum = static_cast<float>(sgd.momentum),
            .dampening = static_cast<float>(sgd.dampening),
            .nesterov = sgd.nesterov} {}

std::vector<std::string> Sgd::state_names() const {
  return rule_.momentum != 0.0f ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void Sgd::allocate_state() { momentum_ = rule_.momentum != 0.0f ? add_state("momentum") : Tensor(); }

void Sgd::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).sgd_step(slice, rule_, scalars, in_slice(momentum_));
}

std::unique_ptr<Optimizer> sgd(std::vector<nn::Parameter> parameters, const SgdOptions& options,
                               const OptimizerOptions& more) {
  return std::make_unique<Sgd>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
