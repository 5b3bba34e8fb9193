// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// Stochastic gradient descent with momentum, dampening and Nesterov's variant, as PyTorch defines them.
class Sgd : public Optimizer {
 public:
  /// Throws FieldError for an option out of range and for a group that matches no parameter.
  Sgd(std::vector<nn::Parameter> parameters, const SgdOptions& sgd, const OptimizerOptions& options = {});
  std::string name() const override { return "sgd"; }
  std::vector<std::string> state_names() const override;

 protected:
  void allocate_state() override;
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::SgdRule rule_;
  Tensor momentum_;
};

/// optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9}, {.clip_norm = 1.0}). Throws as Sgd does.
std::unique_ptr<Optimizer> sgd(std::vector<nn::Parameter> parameters, const SgdOptions& options,
                               const OptimizerOptions& more = {});

}  // namespace lockstep::optim
