// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// LAMB (You et al.: arXiv 1904.00962) as Apex's FusedLAMB: Adam whose update is scaled, parameter by parameter, to
/// |weight| / |update|.
class Lamb : public Optimizer {
 public:
  /// Throws FieldError for an option out of range, for options.larc, and for a group that matches no parameter.
  Lamb(std::vector<nn::Parameter> parameters, const LambOptions& lamb, const OptimizerOptions& options = {});
  std::string name() const override { return "lamb"; }
  std::vector<std::string> state_names() const override { return {"exp_avg", "exp_avg_sq"}; }

 protected:
  bool adapts(const nn::Parameter&, float weight_decay) const override { return use_nvlamb_ || weight_decay != 0.0f; }
  void allocate_state() override;
  void update(const ArenaSlice& slice, const StepScalars& scalars) override;

 private:
  LambRule rule_;
  bool use_nvlamb_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
};

/// optim::lamb(model->parameters(), {.lr = 2e-3}). Throws as Lamb does.
std::unique_ptr<Optimizer> lamb(std::vector<nn::Parameter> parameters, const LambOptions& options,
                                const OptimizerOptions& more = {});

}  // namespace lockstep::optim
