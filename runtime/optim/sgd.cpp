// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/sgd.h"

namespace lockstep::optim {

Sgd::Sgd(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
         const OptimizerOptions& options, const kernels::SgdOptions& sgd)
    : Optimizer(std::move(parameters), std::move(per_parameter), options), sgd_(sgd) {}

std::vector<std::string> Sgd::state_names() const {
  return sgd_.momentum != 0.0f ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void Sgd::allocate_state() { momentum_ = sgd_.momentum != 0.0f ? add_state("momentum") : Tensor(); }

void Sgd::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).sgd_step(slice, sgd_, scalars, momentum_);
}

}  // namespace lockstep::optim
