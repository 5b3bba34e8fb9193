// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/reduce_on_plateau.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/option_checks.h"

namespace lockstep::optim {

namespace {

double next_rate(const ReduceOnPlateauSchedule& options, double rate) {
  // A rate below min_lr stays.
  return std::min(rate, std::max(rate * options.factor, options.min_lr));
}

}  // namespace

double reduced_rate(const ReduceOnPlateauSchedule& options, double lr, std::int64_t reductions) {
  // One by one, as PyTorch rounds.
  for (std::int64_t i = 0; i < reductions; ++i) lr = next_rate(options, lr);
  return lr;
}

ReduceOnPlateau::ReduceOnPlateau(ReduceOnPlateauSchedule options, double lr, Better better)
    : options_(std::move(options)), lr_(lr), better_(better) {
  require_none(problems_in_fields(options_), "schedule." + std::string(ReduceOnPlateauSchedule::kKind));
  FieldChecks checks;
  checks.not_negative(lr, "lr");
  require_none(checks.problems(), "optim::ReduceOnPlateau");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  state_.best = better == Better::kLower ? kInfinity : -kInfinity;
}

bool ReduceOnPlateau::is_better(double value) const {
  const bool lower = better_ == Better::kLower;
  const double by = lower ? -options_.threshold : options_.threshold;
  const bool relative = options_.threshold_mode == ThresholdMode::kRelative;
  const double limit = relative ? state_.best * (1 + by) : state_.best + by;
  return lower ? value < limit : value > limit;
}

bool ReduceOnPlateau::add(double value) {
  if (is_better(value)) {
    state_.best = value;
    state_.bad_evaluations = 0;
  } else {
    ++state_.bad_evaluations;
  }
  if (state_.cooldown_left > 0) {
    --state_.cooldown_left;
    state_.bad_evaluations = 0;
  }
  if (state_.bad_evaluations <= options_.patience) return false;
  state_.bad_evaluations = 0;
  state_.cooldown_left = options_.cooldown;
  return reduce();
}

bool ReduceOnPlateau::reduce() {
  const double rate = learning_rate();
  if (rate - next_rate(options_, rate) <= options_.epsilon) return false;
  ++state_.reductions;
  return true;
}

}  // namespace lockstep::optim
