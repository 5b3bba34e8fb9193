// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace lockstep::kernels {

/// e^x for x <= 88, within 2 units of the last place; 0 where the result would be subnormal; NaN stays NaN. Free of
/// branches and calls, so that a loop over it becomes vector code.
///
/// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r = 1 + r + r^2 P(r). P minimises the largest relative error of e^r over
/// that range (3e-9; found by iteratively reweighted least squares), ln 2 is split so that n times its upper part is
/// exact.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float fast_exp(float x) {
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
  const float p = (((0.00138145f * r + 0.00836878f) * r + 0.04166839f) * r + 0.1666652f) * r + 0.49999993f;
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u);
  const float result = (p * r * r + r + 1.0f) * power;
  return x < -87.33f ? 0.0f : result;
}

}  // namespace lockstep::kernels
