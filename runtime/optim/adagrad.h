// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// Adagrad (Duchi, Hazan, Singer: JMLR 12, 2011), with PyTorch's defaults and order of operations.
class Adagrad : public Optimizer {
 public:
  /// Throws FieldError for an option out of range and for a group that matches no parameter.
  Adagrad(std::vector<nn::Parameter> parameters, const AdagradOptions& adagrad, const OptimizerOptions& options = {});
  std::string name() const override { return "adagrad"; }
  std::vector<std::string> state_names() const override { return {"sum"}; }

 protected:
  void allocate_state() override { sum_ = add_state("sum", initial_accumulator_value_); }
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::AdagradRule rule_;
  double initial_accumulator_value_;
  Tensor sum_;
};

/// optim::adagrad(model->parameters(), {.lr = 0.01}). Throws as Adagrad does.
std::unique_ptr<Optimizer> adagrad(std::vector<nn::Parameter> parameters, const AdagradOptions& options,
                                   const OptimizerOptions& more = {});

}  // namespace lockstep::optim
