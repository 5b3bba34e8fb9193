// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/lars.h"

namespace lockstep::optim {

kernels::ElementRule rule_of(const LarsOptions& options) {
  return kernels::SgdRule{
      .momentum = static_cast<float>(options.momentum), .nesterov = options.nesterov, .rate_in_momentum = true};
}

std::vector<ElementState> states_of(const LarsOptions& options) {
  const bool kept = static_cast<float>(options.momentum) != 0.0f;
  return kept ? std::vector<ElementState>{{"momentum"}} : std::vector<ElementState>{};
}

Lars::Lars(std::vector<nn::Parameter> parameters, const LarsOptions& lars, const OptimizerOptions& options)
    : ElementOptimizer(std::move(parameters), lars, options) {
  adapt_layers({.trust_coefficient = lars.trust_coefficient, .epsilon = lars.epsilon, .decay_without_norm = true});
}

std::unique_ptr<Optimizer> lars(std::vector<nn::Parameter> parameters, const LarsOptions& options,
                                const OptimizerOptions& more) {
  return std::make_unique<Lars>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
