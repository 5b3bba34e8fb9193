// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/target_summary.h"
#include "runtime/tensor/shape.h"
#include "runtime/train/record/eval_result.h"

namespace lockstep::train {

/// How far a regression's answers are from its targets, as the files have them: the scale of the targets is undone.
///
///   rmse  root of the mean of the squared differences, over all numbers of all targets
///   mae   mean of their absolute values
///   r2    of targets of one extent: 1 - (sum of squared differences) / (sum of the targets' squared distances from
///         their own mean), the mean of it over a target's elements; where all targets are equal 1 for answers without
///         a difference, else 0. scikit-learn's r2_score
///
/// The baseline is what the mean of the training targets would get as the answer to every sample. Sums are of float64.
class NumberMetrics {
 public:
  NumberMetrics(const Shape& target_shape, const data::TargetSummary& targets);

  /// Adds answers and targets, whole ones after each other, both scaled.
  void add(std::span<const float> answers, std::span<const float> targets);

  /// The sums so far, always as many: whoever adds those of all ranks gives the result to metrics().
  const std::vector<double>& sums() const { return sums_; }
  /// Appends to `result` what the sums of `samples` targets make.
  void append_to(EvalResult& result, std::span<const double> sums, double samples) const;

  static bool has_r2(const Shape& target_shape) { return target_shape.rank() <= 1; }

 private:
  double& sum(std::size_t which, std::size_t part) { return sums_[which * parts_ + part]; }

  data::TargetScale scale_;
  std::vector<double> mean_;  ///< of the training targets; where that is not known, about where the targets are
  bool has_baseline_;
  std::size_t elements_;
  std::size_t parts_;  ///< of the sums: an element each, or all together
  bool has_r2_;
  std::vector<double> sums_;
};

}  // namespace lockstep::train
