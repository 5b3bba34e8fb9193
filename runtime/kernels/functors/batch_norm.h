// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/half.h"

namespace lockstep {

/// One channel's batch normalisation: (x - mean) * scale + shift with scale = gamma / std, shift = beta. The mean is
/// subtracted first: folded into the shift it would cost the digits of a channel whose mean is far from 0.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float batch_norm(float x, float mean, float scale, float shift) {
  return (x - mean) * scale + shift;
}

/// Its gradient: scale * (dy - mean_dy - (x - mean) * slope), slope = sum_dy_xmu / (count variance).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float batch_norm_backward(float x, float dy, float mean, float scale,
                                                                             float mean_dy, float slope) {
  return scale * (dy - mean_dy - (x - mean) * slope);
}

}  // namespace lockstep
