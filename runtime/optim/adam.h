// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// Adam (Kingma, Ba: arXiv 1412.6980) and AdamW (Loshchilov, Hutter: arXiv 1711.05101), with PyTorch's defaults and
/// order of operations.
class Adam : public Optimizer {
 public:
  Adam(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
       const OptimizerOptions& options, const kernels::AdamOptions& adam);
  std::string name() const override { return adam_.decoupled ? "adamw" : "adam"; }
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

 protected:
  void allocate_state() override;
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::AdamOptions adam_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
};

}  // namespace lockstep::optim
