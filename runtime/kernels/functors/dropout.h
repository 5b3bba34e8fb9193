// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/base/counter_rng.h"

namespace lockstep::kernels {

/// Dropout of one element, given its 32 random bits (CounterRng::at). Kept where uniform_from_bits(bits) >= p, compared
/// in float: as the uniform number has 24 bits, that is where they reach p * 2^24.
struct Dropout {
  std::uint32_t threshold;
  float factor;

  /// p in [0, 1].
  explicit Dropout(double p)
      : threshold(static_cast<std::uint32_t>(std::ceil(static_cast<float>(p) * 0x1p24f))),
        factor(static_cast<float>(1.0 / (1.0 - p))) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE bool keeps(std::uint32_t bits) const { return bits >> 8 >= threshold; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE float operator()(std::uint32_t bits, float x) const {
    return keeps(bits) ? x * factor : 0.0f;
  }
};

}  // namespace lockstep::kernels
