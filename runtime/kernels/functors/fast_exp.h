// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"

// Exponentials of float, free of branches and calls, so that a loop over them becomes vector code.

namespace lockstep::kernels {

/// x = n ln 2 + r with |r| <= ln 2 / 2, so that e^x = 2^n e^r. ln 2 is split so that n times its upper part is exact.
struct ExpArgument {
  static constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits

  float shifted;  ///< n + kRound
  float r;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline ExpArgument(float x) : shifted(x * 1.44269504f + kRound) {
    const float n = shifted - kRound;
    r = (x - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
  }

  /// e^r = 1 + r + r^2 P(r). P minimises the largest relative error of e^r (3e-9; found by iteratively reweighted least
  /// squares).
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float p() const {
    return (((0.00138145f * r + 0.00836878f) * r + 0.04166839f) * r + 0.1666652f) * r + 0.49999993f;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline std::int32_t n() const {
    return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound));
  }
};

/// 2^n for -126 <= n <= 127.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float power_of_two(std::int32_t n) {
  return std::bit_cast<float>((static_cast<std::uint32_t>(n) << 23) + 0x3f800000u);
}

/// 2^x for -126 <= x < 127.5, within 2 units of the last place; elsewhere, NaN included, any number. The polynomial is
/// 1 at 0 and minimises the largest relative error of 2^r, |r| <= 1/2 (9e-8; found by iteratively reweighted least
/// squares).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float bounded_exp2(float x) {
  const float shifted = x + ExpArgument::kRound;
  const float r = x - (shifted - ExpArgument::kRound);
  float p = 0.001326472712f;
  p = p * r + 0.009671512645f;
  p = p * r + 0.05550733743f;
  p = p * r + 0.2402224209f;
  p = p * r + 0.6931469776f;
  p = p * r + 1.0f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

/// e^x for x <= 88, within 2 units of the last place; 0 where the result would be subnormal; NaN stays NaN.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float fast_exp(float x) {
  const ExpArgument of(x);
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(of.shifted) << 23) + 0x3f800000u);
  const float result = (of.p() * of.r * of.r + of.r + 1.0f) * power;
  return x < -87.33f ? 0.0f : result;
}

/// 2^shift e^x for every x, within 2 units of the last place where that is a normal number. |shift| <= 2. 2^n is
/// multiplied in as two factors, each of them a normal number.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float scaled_exp(float x, std::int32_t shift) {
  const float bounded = x < -106.0f ? -106.0f : x > 91.0f ? 91.0f : x;
  const ExpArgument of(bounded);
  const std::int32_t lower = of.n() >> 1;
  const float upper_power = power_of_two(of.n() - lower + shift);
  return (of.p() * of.r * of.r + of.r + 1.0f) * power_of_two(lower) * upper_power;
}

/// (e^x - 1) / 4 for every x, within 2 units of the last place of it where |x| > 1e-30; smaller x may lose digits.
///
/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1): neither term cancels the other. A quarter, so that 2^(n - 2) is finite wherever
/// sinh is.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float quarter_expm1(float x) {
  const float bounded = x < -60.0f ? -60.0f : x > 90.0f ? 90.0f : x;
  const ExpArgument of(bounded);
  const float power = power_of_two(of.n() - 2);
  // Beyond n = 129 even sinh is infinite, and n - 2 has no float.
  const float result = (of.p() * of.r * of.r + of.r) * power + (power - 0.25f);
  return x > 89.5f ? INFINITY : result;
}

/// e^(sign x^2), sign being 1 or -1. x^2 is taken in two parts, of which the upper is exact: a rounded exponent would
/// cost digits.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float exp_of_square(float x, float sign) {
  const float upper = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xfffff000u);
  const float rest = sign * (x - upper) * (x + upper);
  const float of_rest = 1.0f + rest * (1.0f + rest * (0.5f + rest * 0.166666667f));
  // Beyond, the first factor is 0 or infinite.
  return scaled_exp(sign * upper * upper, 0) * (std::fabs(x) < 16.0f ? of_rest : 1.0f);
}

}  // namespace lockstep::kernels
