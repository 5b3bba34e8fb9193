// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/base/host_device.h"

namespace lockstep::kernels {

/// One channel's batch normalisation: (x - mean) * scale + shift with scale = gamma / std, shift = beta. The mean is
/// subtracted first: folded into the shift it would cost the digits of a channel whose mean is far from 0.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float batch_norm(float x, float mean, float scale, float shift) {
  return (x - mean) * scale + shift;
}

/// The gradient of batch_norm(): scale * (dy - mean_dy - (x - mean) * slope), slope = sum_dy_xmu / (count variance).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float batch_norm_backward(float x, float dy, float mean, float scale,
                                                                             float mean_dy, float slope) {
  return scale * (dy - mean_dy - (x - mean) * slope);
}

/// One channel's statistics over the shares of all ranks, joined in their order.
struct JoinedShares {
  double rows = 0;
  double mean = 0;
  double m2 = 0;  ///< sum of (x - mean)^2

  /// Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
  LOCKSTEP_HOST_DEVICE void add(double share_mean, double share_m2, double share_rows) {
    if (share_rows == 0) return;
    const double whole = rows + share_rows;
    const double distance = share_mean - mean;
    mean += distance * share_rows / whole;
    m2 += share_m2 + distance * distance * rows * share_rows / whole;
    rows = whole;
  }

  LOCKSTEP_HOST_DEVICE double inv_std(double epsilon) const {
    return 1 / std::sqrt((rows > 0 ? m2 / rows : 0) + epsilon);
  }
  /// The next running statistics; without rows they stay. The running variance is the unbiased one.
  LOCKSTEP_HOST_DEVICE double next_mean(double running, double momentum) const {
    return rows > 0 ? running + momentum * (mean - running) : running;
  }
  LOCKSTEP_HOST_DEVICE double next_variance(double running, double momentum) const {
    return rows > 0 ? running + momentum * (m2 / (rows > 2 ? rows - 1 : 1.0) - running) : running;
  }
};

}  // namespace lockstep::kernels
