// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/adam.h"

namespace lockstep::optim {

namespace {

template <class Options>
const Options& checked(const Options& options, const char* path) {
  require_none(problems_of(options), path);
  return options;
}

}  // namespace

Adam::Adam(std::vector<nn::Parameter> parameters, const AdamOptions& adam, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), checked(adam, "optimizer.adam").lr, adam.weight_decay, options),
      rule_{adam.beta1, adam.beta2, adam.epsilon, false} {}

Adam::Adam(std::vector<nn::Parameter> parameters, const AdamwOptions& adamw, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), checked(adamw, "optimizer.adamw").lr, adamw.weight_decay, options),
      rule_{adamw.beta1, adamw.beta2, adamw.epsilon, true} {}

void Adam::allocate_state() {
  exp_avg_ = add_state("exp_avg");
  exp_avg_sq_ = add_state("exp_avg_sq");
}

void Adam::update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) {
  kernels::backend(slice.master.device()).adam_step(slice, rule_, scalars, in_slice(exp_avg_), in_slice(exp_avg_sq_));
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
