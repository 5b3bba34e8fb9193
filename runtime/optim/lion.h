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

/// Lion (Chen et al.: arXiv 2302.06675): every weight moves by the learning rate, in the direction of a momentum's
/// sign. Its learning rate is a third to a tenth of AdamW's, and its weight decay as much larger. Norms and biases
/// never decay unless a group says so.
struct LionOptions {
  double lr = 0;            ///< > 0: has to be given
  double beta1 = 0.9;       ///< >= 0 and < 1: what the direction takes of the momentum
  double beta2 = 0.99;      ///< >= 0 and < 1: what the momentum keeps of itself
  double weight_decay = 0;  ///< >= 0; it acts on the weight, not on the gradient

  static constexpr std::string_view kKind = "lion";  ///< its name in a job
  static constexpr bool kTakesLarc = false;          ///< its steps are of one size, whatever the gradient's
  static constexpr auto fields() {
    return std::tuple(option("lr", &LionOptions::lr, kPositive, Required{"the learning rate"}),
                      option("beta1", &LionOptions::beta1, kFraction), option("beta2", &LionOptions::beta2, kFraction),
                      option("weight_decay", &LionOptions::weight_decay, kNotNegative));
  }
  bool operator==(const LionOptions&) const = default;
};

inline FieldProblems problems_of(const LionOptions& options) { return problems_in_fields(options); }

inline ElementRule rule_of(const LionOptions& options) {
  return LionRule{.beta1 = options.beta1, .beta2 = options.beta2};
}

inline std::vector<ElementState> states_of(const LionOptions&) { return {{"exp_avg"}}; }

/// optim::lion(model->parameters(), {.lr = 1e-4, .weight_decay = 1.0}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> lion(std::vector<nn::Parameter> parameters, const LionOptions& options,
                                       const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
