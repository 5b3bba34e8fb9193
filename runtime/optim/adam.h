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

// Adam (Kingma, Ba: arXiv 1412.6980) and AdamW (Loshchilov, Hutter: arXiv 1711.05101), with AMSGrad (Reddi, Kale,
// Kumar: arXiv 1904.09237) or without, with PyTorch's defaults and order of operations.

/// Adam; weight decay is added to the gradient. Norms and biases never decay unless a group says so.
struct AdamOptions {
  double lr = 0;            ///< > 0: has to be given
  double beta1 = 0.9;       ///< >= 0 and < 1
  double beta2 = 0.999;     ///< >= 0 and < 1
  double epsilon = 1e-8;    ///< > 0
  double weight_decay = 0;  ///< >= 0
  bool amsgrad = false;     ///< divides by the root of the largest second moment up to now

  static constexpr std::string_view kKind = "adam";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("lr", &AdamOptions::lr, kPositive, Required{"the learning rate"}),
                      option("beta1", &AdamOptions::beta1, kFraction), option("beta2", &AdamOptions::beta2, kFraction),
                      option("epsilon", &AdamOptions::epsilon, kPositive),
                      option("weight_decay", &AdamOptions::weight_decay, kNotNegative, Otherwise::kFollows),
                      option("amsgrad", &AdamOptions::amsgrad));
  }
  bool operator==(const AdamOptions&) const = default;
};

/// AdamW; weight decay is decoupled from the gradient. Norms and biases never decay unless a group says so.
struct AdamwOptions {
  double lr = 0;               ///< > 0: has to be given
  double beta1 = 0.9;          ///< >= 0 and < 1
  double beta2 = 0.999;        ///< >= 0 and < 1
  double epsilon = 1e-8;       ///< > 0
  double weight_decay = 0.01;  ///< >= 0
  bool amsgrad = false;        ///< divides by the root of the largest second moment up to now

  static constexpr std::string_view kKind = "adamw";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("lr", &AdamwOptions::lr, kPositive, Required{"the learning rate"}),
                      option("beta1", &AdamwOptions::beta1, kFraction),
                      option("beta2", &AdamwOptions::beta2, kFraction),
                      option("epsilon", &AdamwOptions::epsilon, kPositive),
                      option("weight_decay", &AdamwOptions::weight_decay, kNotNegative, Otherwise::kFollows),
                      option("amsgrad", &AdamwOptions::amsgrad));
  }
  bool operator==(const AdamwOptions&) const = default;
};

inline FieldProblems problems_of(const AdamOptions& options) { return problems_in_fields(options); }
inline FieldProblems problems_of(const AdamwOptions& options) { return problems_in_fields(options); }

inline ElementRule rule_of(const AdamOptions& options) {
  return AdamRule{
      .beta1 = options.beta1, .beta2 = options.beta2, .epsilon = options.epsilon, .amsgrad = options.amsgrad};
}
inline ElementRule rule_of(const AdamwOptions& options) {
  return AdamRule{.beta1 = options.beta1,
                  .beta2 = options.beta2,
                  .epsilon = options.epsilon,
                  .decoupled = true,
                  .amsgrad = options.amsgrad};
}

inline std::vector<ElementState> adam_states(bool amsgrad) {
  std::vector<ElementState> states{{"exp_avg"}, {"exp_avg_sq"}};
  if (amsgrad) states.push_back({"max_exp_avg_sq"});
  return states;
}
inline std::vector<ElementState> states_of(const AdamOptions& options) { return adam_states(options.amsgrad); }
inline std::vector<ElementState> states_of(const AdamwOptions& options) { return adam_states(options.amsgrad); }

/// optim::adam(model->parameters(), {.lr = 1e-3}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> adam(std::vector<nn::Parameter> parameters, const AdamOptions& options,
                                       const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}
/// optim::adamw(model->parameters(), {.lr = 1e-3, .weight_decay = 0.1}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> adamw(std::vector<nn::Parameter> parameters, const AdamwOptions& options,
                                        const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
