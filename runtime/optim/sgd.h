// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/optim/element_optimizer.h"

namespace lockstep::optim {

/// SGD as PyTorch defines it. Norms and biases never decay unless a group says so.
struct SgdOptions {
  double lr = 0;            ///< > 0: has to be given
  double momentum = 0;      ///< >= 0 and < 1
  double weight_decay = 0;  ///< >= 0
  bool nesterov = false;    ///< needs momentum > 0 and dampening 0
  double dampening = 0;     ///< >= 0 and < 1

  static constexpr std::string_view kKind = "sgd";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("lr", &SgdOptions::lr, kPositive, Required{"the learning rate"}),
                      option("momentum", &SgdOptions::momentum, kFraction),
                      option("weight_decay", &SgdOptions::weight_decay, kNotNegative),
                      option("nesterov", &SgdOptions::nesterov),
                      option("dampening", &SgdOptions::dampening, kFraction));
  }
  bool operator==(const SgdOptions&) const = default;
};

inline FieldProblems problems_of(const SgdOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    checks.error("nesterov", "needs momentum > 0 and dampening 0", {"momentum", "dampening"});
  }
  return checks.problems();
}

inline ElementRule rule_of(const SgdOptions& options) {
  return SgdRule{.momentum = static_cast<float>(options.momentum),
                 .dampening = static_cast<float>(options.dampening),
                 .nesterov = options.nesterov};
}

inline std::vector<ElementState> states_of(const SgdOptions& options) {
  // Rounded as in the rule, whose momentum is a float.
  const bool kept = static_cast<float>(options.momentum) != 0.0f;
  return kept ? std::vector<ElementState>{{"momentum"}} : std::vector<ElementState>{};
}

/// optim::sgd(model->parameters(), {.lr = 0.1, .momentum = 0.9}, {.clip_norm = 1.0}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> sgd(std::vector<nn::Parameter> parameters, const SgdOptions& options,
                                      const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
