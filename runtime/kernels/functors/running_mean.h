// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/optimizer_rules.h"

namespace lockstep::kernels {

/// The share of the weights that enters their mean at applied step number `applied_steps`, counted from 1.
LOCKSTEP_HOST_DEVICE inline double weight_share(const MeanRule& rule, std::int64_t applied_steps) {
  if (rule.warmup <= 0) return 1.0 - rule.decay;
  const double n = static_cast<double>(applied_steps);
  const double warm = (1.0 + n) / (rule.warmup + n);
  return 1.0 - (warm < rule.decay ? warm : rule.decay);
}

/// Moves a mean towards a weight. A mean equal to its weight stays, bit for bit: frozen weights, and the gaps between
/// parameters.
struct RunningMean {
  float share;

  LOCKSTEP_HOST_DEVICE RunningMean(const MeanRule& rule, std::int64_t applied_steps)
      : share(static_cast<float>(weight_share(rule, applied_steps))) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float operator()(float mean, float weight) const {
    return mean + share * (weight - mean);
  }
};

}  // namespace lockstep::kernels
