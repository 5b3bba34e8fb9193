// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/number_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/train/one_nan.h"

namespace lockstep::train {

namespace {

/// Sums that are counted: of differences between answer and target, and of the targets' distances from the mean.
enum Sum : std::size_t { kSquaredDifference, kDifference, kDistance, kSquaredDistance, kAbsoluteDistance, kSums };

double r2_of(double squared_differences, double spread) {
  if (spread > 0 || std::isnan(squared_differences)) return 1 - squared_differences / spread;
  return squared_differences == 0 ? 1 : 0;
}

}  // namespace

NumberMetrics::NumberMetrics(const Shape& target_shape, const data::TargetSummary& targets)
    : scale_(targets.scale),
      mean_(targets.mean),
      has_baseline_(std::ssize(targets.mean) == target_shape.numel()),
      elements_(static_cast<std::size_t>(target_shape.numel())),
      parts_(has_r2(target_shape) ? elements_ : 1),
      has_r2_(has_r2(target_shape)),
      sums_(kSums * parts_) {
  if (has_baseline_) return;
  // Distances from a number close to the targets keep the digits of their squares.
  mean_.resize(elements_);
  for (std::size_t e = 0; e < elements_; ++e) mean_[e] = scale_.undone(0, e);
}

void NumberMetrics::add(std::span<const float> answers, std::span<const float> targets) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t element = i % elements_;
    const std::size_t part = has_r2_ ? element : 0;
    const double target = scale_.undone(static_cast<double>(targets[i]), element);
    const double difference = scale_.undone(static_cast<double>(answers[i]), element) - target;
    const double distance = target - mean_[element];
    sum(kSquaredDifference, part) += difference * difference;
    sum(kDifference, part) += std::abs(difference);
    sum(kDistance, part) += distance;
    sum(kSquaredDistance, part) += distance * distance;
    sum(kAbsoluteDistance, part) += std::abs(distance);
  }
}

void NumberMetrics::append_to(EvalResult& result, std::span<const double> sums, double samples) const {
  const auto of = [&](Sum which) { return sums.subspan(which * parts_, parts_); };
  const auto total = [&](Sum which) { return std::accumulate(of(which).begin(), of(which).end(), 0.0); };
  const double numbers = samples * static_cast<double>(elements_);
  result.metrics.push_back({"rmse", one_nan(std::sqrt(total(kSquaredDifference) / numbers)), false});
  result.metrics.push_back({"mae", one_nan(total(kDifference) / numbers), false});
  if (has_baseline_) {
    result.baseline.push_back({"rmse", std::sqrt(total(kSquaredDistance) / numbers), false});
    result.baseline.push_back({"mae", total(kAbsoluteDistance) / numbers, false});
  }
  if (!has_r2_) return;
  double r2 = 0;
  for (std::size_t part = 0; part < parts_; ++part) {
    const double distance = of(kDistance)[part];
    const double spread = of(kSquaredDistance)[part] - distance * distance / samples;
    r2 += r2_of(of(kSquaredDifference)[part], std::max(spread, 0.0)) / static_cast<double>(parts_);
  }
  result.metrics.push_back({"r2", one_nan(r2), false});
}

}  // namespace lockstep::train
