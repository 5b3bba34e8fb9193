// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/functors/logarithm.h"

namespace lockstep::kernels {

/// log2 x of a positive float in double, within 1e-11; -inf at 0, inf at inf, NaN for NaN.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double wide_log2(float x) {
  // log2 m = s P(s^2) with s = (m - 1) / (m + 1), |s| <= 0.172. P minimises the largest relative error (5e-12; found by
  // iteratively reweighted least squares).
  const BinaryParts of(x);
  const double m = static_cast<double>(of.m);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 0.3407277779227569;
  p = p * z + 0.4116728431250519;
  p = p * z + 0.577083582889086;
  p = p * z + 0.9617966733533468;
  p = p * z + 2.8853900817900726;
  const double finite = static_cast<double>(of.k) + s * p;
  const double limit = static_cast<double>(x == 0.0f ? -INFINITY : x);
  return x > 0.0f && x < INFINITY ? finite : limit;
}

/// 2^x in double, within 1e-10 of it where a float holds it, and as far beyond as tells 0 and infinity.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double wide_exp2(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double bounded = x < -160.0 ? -160.0 : x > 130.0 ? 130.0 : x;
  const double shifted = bounded + kRound;
  const double r = bounded - (shifted - kRound);
  // Minimises the largest relative error of 2^r (5e-11; found as above).
  double p = 1.5196156101470598e-05;
  p = p * r + 0.00015466756319251242;
  p = p * r + 0.001333393505724017;
  p = p * r + 0.009618038132043857;
  p = p * r + 0.05550410365989633;
  p = p * r + 0.2402265106656128;
  p = p * r + 0.6931471807045325;
  p = p * r + 1.0;
  return p * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + 0x3ff0000000000000u);
}

/// a^b within 1 unit of the last place, with the limits of C's pow(). The logarithm is taken in double: the error of
/// its digits is multiplied by b. Free of branches and calls.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float power(float a, float b) {
  const float size = std::fabs(a);
  const float positive = static_cast<float>(wide_exp2(static_cast<double>(b) * wide_log2(size)));
  const bool is_integer = std::trunc(b) == b;
  const bool is_odd = is_integer && std::trunc(0.5f * b) * 2.0f != b;
  const float signed_power = is_odd ? std::copysign(positive, a) : positive;
  const float real = a < 0.0f && a > -INFINITY && !is_integer ? NAN : signed_power;
  // a^0 and 1^b are 1 for every a and b, NaN included; (-1)^inf and (-1)^-inf are 1 too.
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
