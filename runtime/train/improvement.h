// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "runtime/train/record/eval_result.h"

namespace lockstep::checkpoint {
class MetricState;
}

namespace lockstep::train {

/// Follows one metric from evaluation to evaluation.
class Improvement {
 public:
  /// `metric`: as value_of() names it. By less than `min_delta` nothing becomes better.
  explicit Improvement(std::string metric, double min_delta = 0) : metric_(std::move(metric)), min_delta_(min_delta) {}

  /// Whether this evaluation is better than all before, or the first one. NaN is never better.
  bool add(const EvalResult& result);
  const std::string& metric() const { return metric_; }
  /// The best value so far; NaN where there is none.
  double best() const { return best_; }
  /// How many evaluations in a row were not better.
  std::uint32_t evaluations_since() const { return since_; }

  void save(checkpoint::MetricState& state) const;
  /// Goes on from there; what was saved of another metric is left alone.
  void load(const checkpoint::MetricState& state);

 private:
  std::string metric_;
  double min_delta_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  std::uint32_t since_ = 0;
};

}  // namespace lockstep::train
