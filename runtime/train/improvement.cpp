// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/improvement.h"

#include <cmath>

#include "runtime/checkpoint/checkpoint.h"

namespace lockstep::train {

bool Improvement::add(const EvalResult& result) {
  const double value = value_of(result, metric_).value_or(std::numeric_limits<double>::quiet_NaN());
  const double gain = is_better_lower(metric_) ? best_ - value : value - best_;
  const bool better = !std::isnan(value) && (std::isnan(best_) || (gain > 0 && gain >= min_delta_));
  if (better) best_ = value;
  since_ = better ? 0 : since_ + 1;
  return better;
}

void Improvement::save(checkpoint::MetricState& state) const {
  state.set_metric(metric_);
  state.set_best(best_);
  state.set_evaluations_since(since_);
}

void Improvement::load(const checkpoint::MetricState& state) {
  if (state.metric() != metric_) return;
  best_ = state.best();
  since_ = state.evaluations_since();
}

}  // namespace lockstep::train
