// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// LARS (You, Gitman, Ginsburg: arXiv 1708.03888) as MLPerf trains ResNet with it: LarsOptions says how.
class Lars : public Optimizer {
 public:
  /// Throws FieldError for an option out of range, for options.larc, and for a group that matches no parameter.
  Lars(std::vector<nn::Parameter> parameters, const LarsOptions& lars, const OptimizerOptions& options = {});
  std::string name() const override { return "lars"; }
  std::vector<std::string> state_names() const override;

 protected:
  bool adapts(const nn::Parameter& parameter, float) const override {
    return parameter.kind == nn::ParameterKind::kWeight;
  }
  void allocate_state() override;
  void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) override;

 private:
  kernels::SgdRule rule_;
  Tensor momentum_;
};

/// optim::lars(model->parameters(), {.lr = 2, .weight_decay = 1e-4}). Throws as Lars does.
std::unique_ptr<Optimizer> lars(std::vector<nn::Parameter> parameters, const LarsOptions& options,
                                const OptimizerOptions& more = {});

}  // namespace lockstep::optim
