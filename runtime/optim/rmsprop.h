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

/// RMSprop (Hinton: lecture 6e of "Neural networks for machine learning", 2012) as PyTorch defines it. Norms and biases
/// never decay unless a group says so.
struct RmspropOptions {
  double lr = 0;            ///< > 0: has to be given
  double alpha = 0.99;      ///< >= 0 and < 1: what the mean of squares keeps of itself
  double epsilon = 1e-8;    ///< > 0
  double weight_decay = 0;  ///< >= 0
  double momentum = 0;      ///< >= 0 and < 1
  bool centered = false;    ///< divides by the gradient's standard deviation, not by the root of its mean square

  static constexpr std::string_view kKind = "rmsprop";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("lr", &RmspropOptions::lr, kPositive, Required{"the learning rate"}),
        option("alpha", &RmspropOptions::alpha, kFraction), option("epsilon", &RmspropOptions::epsilon, kPositive),
        option("weight_decay", &RmspropOptions::weight_decay, kNotNegative),
        option("momentum", &RmspropOptions::momentum, kFraction), option("centered", &RmspropOptions::centered));
  }
  bool operator==(const RmspropOptions&) const = default;
};

inline FieldProblems problems_of(const RmspropOptions& options) { return problems_in_fields(options); }

inline ElementRule rule_of(const RmspropOptions& options) {
  return RmspropRule{.alpha = options.alpha,
                     .epsilon = options.epsilon,
                     .momentum = static_cast<float>(options.momentum),
                     .centered = options.centered};
}

inline std::vector<ElementState> states_of(const RmspropOptions& options) {
  std::vector<ElementState> states{{"square_avg"}};
  if (options.centered) states.push_back({"grad_avg"});
  if (static_cast<float>(options.momentum) != 0.0f) states.push_back({"momentum"});
  return states;
}

/// optim::rmsprop(model->parameters(), {.lr = 0.01}). Throws as ElementOptimizer does.
inline std::unique_ptr<Optimizer> rmsprop(std::vector<nn::Parameter> parameters, const RmspropOptions& options,
                                          const OptimizerOptions& more = {}) {
  return std::make_unique<ElementOptimizer>(std::move(parameters), options, more);
}

}  // namespace lockstep::optim
