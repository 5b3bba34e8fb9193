// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>

#include "runtime/kernels/functors/fast_exp.h"

namespace lockstep::kernels {

/// The sums that one pass over logits x keeps: log sum e^x = max + log(sum). raise() moves the maximum.
struct Exponentials {
  // Not -inf, for which logits that begin with -inf would give NaN.
  float max = -FLT_MAX;
  float sum = 0;       ///< of e^(x - max)
  float distance = 0;  ///< sum of max - x; finite digits even where the logits are large
  float count = 0;

  /// Raises the maximum to `largest`: before values up to it are added, or to agree with others on a maximum.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE void raise(float largest) {
    if (!(largest > max)) return;
    sum *= fast_exp(max - largest);
    // A select, not a product with 0: the first distance may be infinite.
    distance += count > 0 ? count * (largest - max) : 0.0f;
    max = largest;
  }

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE void add(float x) {
    sum += fast_exp(x - max);
    distance += max - x;
    count += 1;
  }
};

/// -(1 - s) log p[target] - s / C sum_c log p[c] of a row, given its target's max - x, the sum of all of them, and
/// log(sum). Distances from the maximum are exact where the logits themselves are large.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float cross_entropy(float of_target, float sum_of_distances,
                                                                       float classes, float log_sum, float smoothing) {
  // Guarded, so that a logit of -inf in another class costs nothing without smoothing.
  if (!(smoothing > 0)) return of_target + log_sum;
  return (1 - smoothing) * of_target + smoothing * (sum_of_distances / classes) + log_sum;
}

}  // namespace lockstep::kernels
