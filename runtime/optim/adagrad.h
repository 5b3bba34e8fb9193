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

/// Adagrad (Duchi, Hazan, Singer: JMLR 12, 2011) as PyTorch defines it. Norms and biases never decay unless a group
/// says so.
struct AdagradOptions {
  double lr = 0;                         ///< > 0: has to be given
  double lr_decay = 0;                   ///< >= 0: lr is divided by 1 + lr_decay * the parameter's earlier steps
  double weight_decay = 0;               ///< >= 0
  double initial_accumulator_value = 0;  ///< >= 0: where the sums of squares start
  double epsilon = 1e-10;                ///< > 0
  bool adagrad_w_mode = false;           ///< as Apex has it: weight decay is decoupled from the gradient

  static constexpr std::string_view kKind = "adagrad";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("lr", &AdagradOptions::lr, kPositive, Required{"the learning rate"}),
                      option("lr_decay", &AdagradOptions::lr_decay, kNotNegative),
                      option("weight_decay", &AdagradOptions::weight_decay, kNotNegative),
                      option("initial_accumulator_value", &AdagradOptions::initial_accumulator_value, kNotNegative),
                      option("epsilon", &AdagradOptions::epsilon, kPositive),
                      option("adagrad_w_mode", &AdagradOptions::adagrad_w_mode));
  }
  bool operator==(const AdagradOptions&) const = default;
};

inline FieldProblems problems_of(const AdagradOptions& options) { return problems_in_fields(options); }

inline ElementRule rule_of(const AdagradOptions& options) {
  return AdagradRule{.lr_decay = options.lr_decay, .epsilon = options.epsilon, .decoupled = options.adagrad_w_mode};
}

inline std::vector<ElementState> states_of(const AdagradOptions& options) {
  return {{"sum", options.initial_accumulator_value}};
}

/// optim::adagrad(model->parameters(), {.lr = 0.01}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> adagrad(std::vector<nn::Parameter> parameters, const AdagradOptions& options,
                                          const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
