// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/optim/element_optimizer.h"

namespace lockstep::optim {

ElementRule rule_of(const LarsOptions& options);
std::vector<ElementState> states_of(const LarsOptions& options);

/// LARS (You, Gitman, Ginsburg: arXiv 1708.03888) as MLPerf trains ResNet with it: LarsOptions says how.
class Lars : public ElementOptimizer {
 public:
  /// Throws FieldError for an option out of range, for options.larc, and for a group that matches no parameter.
  Lars(std::vector<nn::Parameter> parameters, const LarsOptions& lars, const OptimizerOptions& options = {});

 protected:
  bool adapts(const nn::Parameter& parameter, float) const override {
    return parameter.kind == nn::ParameterKind::kWeight;
  }
};

/// optim::lars(model->parameters(), {.lr = 2, .weight_decay = 1e-4}). Throws as Lars does.
std::unique_ptr<Optimizer> lars(std::vector<nn::Parameter> parameters, const LarsOptions& options,
                                const OptimizerOptions& more = {});

}  // namespace lockstep::optim
