// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// Stochastic gradient descent with momentum, dampening and Nesterov's variant, as PyTorch defines them.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
      const OptimizerOptions& options, const kernels::SgdOptions& sgd);
  std::string name() const override { return "sgd"; }
  std::vector<std::string> state_names() const override;

 protected:
  void allocate_state() override;
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::SgdOptions sgd_;
  Tensor momentum_;
};

}  // namespace lockstep::optim
