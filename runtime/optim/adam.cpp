// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/adam.h"

#include "runtime/kernels/backend.h"

namespace lockstep::optim {

Adam::Adam(std::vector<nn::Parameter> parameters, const AdamOptions& adam, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), adam, options),
      rule_{.beta1 = adam.beta1, .beta2 = adam.beta2, .epsilon = adam.epsilon, .amsgrad = adam.amsgrad} {}

Adam::Adam(std::vector<nn::Parameter> parameters, const AdamwOptions& adamw, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), adamw, options),
      rule_{.beta1 = adamw.beta1,
            .beta2 = adamw.beta2,
            .epsilon = adamw.epsilon,
            .decoupled = true,
            .amsgrad = adamw.amsgrad} {}

std::vector<std::string> Adam::state_names() const {
  std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
  if (rule_.amsgrad) names.emplace_back("max_exp_avg_sq");
  return names;
}

void Adam::allocate_state() {
  exp_avg_ = add_state("exp_avg");
  exp_avg_sq_ = add_state("exp_avg_sq");
  max_exp_avg_sq_ = rule_.amsgrad ? add_state("max_exp_avg_sq") : Tensor();
}

void Adam::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device())
      .adam_step(slice, rule_, scalars, in_slice(exp_avg_), in_slice(exp_avg_sq_), in_slice(max_exp_avg_sq_));
}

std::unique_ptr<Optimizer> adam(std::vector<nn::Parameter> parameters, const AdamOptions& options,
                                const OptimizerOptions& more) {
  return std::make_unique<Adam>(std::move(parameters), options, more);
}

std::unique_ptr<Optimizer> adamw(std::vector<nn::Parameter> parameters, const AdamwOptions& options,
                                 const OptimizerOptions& more) {
  return std::make_unique<Adam>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
