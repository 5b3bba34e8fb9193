// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

struct LossOptions {
  double label_smoothing = 0.0;  ///< cross_entropy only
  /// What the sum over samples is divided by; 0: the number of samples here (the mean), or 1 where there are none. A
  /// rank's share of a global batch divides by the global count, so that the ranks' losses add up to the batch's.
  double divisor = 0.0;
};

/// logits [..., classes], targets int64 class indices [...] -> float32 scalar. Logits may be 16-bit: they are read
/// exactly and computed in float32, as autocast's float32 policy asks, without a copy.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const LossOptions& options = {});
/// Mean of (x - target)^2 over all elements; x [N, ...] and target of the same shape -> float32 scalar. `divisor`
/// counts samples: the sum is divided by divisor times the elements of a sample.
Tensor mse(const Tensor& x, const Tensor& target, const LossOptions& options = {});

}  // namespace lockstep::ops
