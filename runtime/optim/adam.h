// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// Adam (Kingma, Ba: arXiv 1412.6980) and AdamW (Loshchilov, Hutter: arXiv 1711.05101), with AMSGrad (Reddi, Kale,
/// Kumar: arXiv 1904.09237) or without, with PyTorch's defaults and order of operations.
class Adam : public Optimizer {
 public:
  // Each throws FieldError for an option out of range and for a group that matches no parameter.
  Adam(std::vector<nn::Parameter> parameters, const AdamOptions& adam, const OptimizerOptions& options = {});
  Adam(std::vector<nn::Parameter> parameters, const AdamwOptions& adamw, const OptimizerOptions& options = {});
  std::string name() const override { return rule_.decoupled ? "adamw" : "adam"; }
  std::vector<std::string> state_names() const override;

 protected:
  void allocate_state() override;
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::AdamRule rule_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
  Tensor max_exp_avg_sq_;  ///< undefined without amsgrad
};

/// optim::adam(model->parameters(), {.lr = 1e-3}). Throws as Adam does.
std::unique_ptr<Optimizer> adam(std::vector<nn::Parameter> parameters, const AdamOptions& options,
                                const OptimizerOptions& more = {});
/// optim::adamw(model->parameters(), {.lr = 1e-3, .weight_decay = 0.1}). Throws as Adam does.
std::unique_ptr<Optimizer> adamw(std::vector<nn::Parameter> parameters, const AdamwOptions& options,
                                 const OptimizerOptions& more = {});

}  // namespace lockstep::optim
