// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"

namespace lockstep::kernels {

/// log x of a positive float in double, within 1e-11; -inf at 0, inf at inf, NaN for NaN.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double wide_log(double x) {
  // x = 2^k m with sqrt(1/2) <= m < sqrt 2, log m = 2 artanh s, s = (m - 1) / (m + 1): its series, |s| <= 0.172.
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::int32_t k = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits >> 32) - 0x3fe6a09eu) >> 20;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(static_cast<std::int64_t>(k)) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  const double series = ((((z / 13 + 1.0 / 11) * z + 1.0 / 9) * z + 1.0 / 7) * z + 1.0 / 5) * z + 1.0 / 3;
  const double finite = static_cast<double>(k) * 0x1.62e42fefa39efp-1 + 2 * (s + s * z * series);
  const double limit = x == 0.0 ? -INFINITY : x;
  return x > 0.0 && x < INFINITY ? finite : limit;
}

/// e^x in double, within 1e-11 of it where a float holds it, and as far beyond as tells 0 and infinity.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double wide_exp(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double bounded = x < -110.0 ? -110.0 : x > 95.0 ? 95.0 : x;
  const double shifted = bounded * 0x1.71547652b82fep+0 + kRound;
  const double r = bounded - (shifted - kRound) * 0x1.62e42fefa39efp-1;
  double series = 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 0.5;
  series = series * r + 1.0;
  series = series * r + 1.0;
  return series * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + 0x3ff0000000000000u);
}

/// a^b within 1 unit of the last place, with the limits of C's pow(). The logarithm is taken in double: the error of
/// its digits is multiplied by b. Free of branches and calls.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float power(float a, float b) {
  const float size = std::fabs(a);
  const float positive = static_cast<float>(wide_exp(static_cast<double>(b) * wide_log(static_cast<double>(size))));
  const bool is_integer = std::trunc(b) == b;
  const bool is_odd = is_integer && std::trunc(0.5f * b) * 2.0f != b;
  const float signed_power = is_odd ? std::copysign(positive, a) : positive;
  const float real = a < 0.0f && a > -INFINITY && !is_integer ? NAN : signed_power;
  // Whatever else stands there, NaN included; and (-1)^inf is 1.
  const bool is_one = b == 0.0f || a == 1.0f || (a == -1.0f && std::fabs(b) == INFINITY);
  return is_one ? 1.0f : real;
}
inline double power(double a, double b) { return std::pow(a, b); }

/// The powers that take no logarithm.
struct FirstPower {
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float operator()(float x) const { return x; }
};
struct Square {
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float operator()(float x) const { return x * x; }
};
struct Cube {
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float operator()(float x) const { return x * x * x; }
};
struct Inverse {
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float operator()(float x) const { return 1.0f / x; }
};

/// Calls visit(f) where x^exponent is one of those; returns whether it is.
template <class Visit>
bool visit_plain_power(double exponent, Visit visit) {
  if (exponent == 1) return visit(FirstPower()), true;
  if (exponent == 2) return visit(Square()), true;
  if (exponent == 3) return visit(Cube()), true;
  if (exponent == -1) return visit(Inverse()), true;
  return false;
}

}  // namespace lockstep::kernels
