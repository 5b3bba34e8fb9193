// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

/// NovoGrad (Ginsburg et al.: arXiv 1905.11286) as Apex's FusedNovoGrad: momentum of gradients that are divided by a
/// running norm, one number a parameter.
class Novograd : public Optimizer {
 public:
  /// Throws FieldError for an option out of range, for options.larc, and for a group that matches no parameter.
  Novograd(std::vector<nn::Parameter> parameters, const NovogradOptions& novograd,
           const OptimizerOptions& options = {});
  std::string name() const override { return "novograd"; }
  std::vector<std::string> state_names() const override { return {"exp_avg"}; }
  /// Apex's name of the second moment, though the state is its root.
  std::vector<std::string> parameter_state_names() const override { return {"exp_avg_sq"}; }

 protected:
  void allocate_state() override;
  void update(const ArenaSlice& slice, const StepScalars& scalars) override;

 private:
  NovogradRule rule_;
  Tensor exp_avg_;
  Tensor exp_avg_sq_;
};

/// optim::novograd(model->parameters(), {.lr = 0.01}). Throws as Novograd does.
std::unique_ptr<Optimizer> novograd(std::vector<nn::Parameter> parameters, const NovogradOptions& options,
                                    const OptimizerOptions& more = {});

}  // namespace lockstep::optim
