// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/kernels/functors/trigonometry.h"

// atan of the list in unary.h and atan2 of that in binary.h. Within 3 units of the last place.

namespace lockstep::kernels {

/// atan t for 0 <= t <= 1: t + t z P(z) with z = t^2. P minimises the largest relative error of atan (2e-9; found by
/// iteratively reweighted least squares against 40-digit values).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float atan_of_fraction(float t) {
  const float z = t * t;
  float p = -0.0017539167f;
  p = p * z + 0.010726884f;
  p = p * z - 0.030804485f;
  p = p * z + 0.057551987f;
  p = p * z - 0.083773091f;
  p = p * z + 0.10942028f;
  p = p * z - 0.14261933f;
  p = p * z + 0.19998266f;
  p = p * z - 0.33333284f;
  return t + t * (z * p);
}

/// The angle of the point (x, y) to the positive x axis, in [-pi, pi], with the limits of C's atan2(). Free of branches
/// and calls.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float angle_of(float y, float x) {
  const float across = std::fabs(x), up = std::fabs(y);
  const bool is_steep = up > across;
  const float longer = is_steep ? up : across;
  const float ratio = (is_steep ? across : up) / longer;
  // 0 / 0 and infinity / infinity are no numbers.
  const float finite = longer == 0.0f ? 0.0f : across == up ? 1.0f : ratio;
  const float small = atan_of_fraction(finite);
  const float first = is_steep ? (kHalfPi - small) + kHalfPiRest : small;
  const float angle = std::signbit(x) ? (2.0f * kHalfPi - first) + 2.0f * kHalfPiRest : first;
  return x != x || y != y ? x + y : std::copysign(angle, y);
}
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline double angle_of(double y, double x) { return std::atan2(y, x); }

struct Atan {
  static constexpr Unary kUnary = Unary::kAtan;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float size = std::fabs(x);
    const bool is_steep = size > 1.0f;
    const float small = atan_of_fraction(is_steep ? 1.0f / size : size);
    return std::copysign(is_steep ? (kHalfPi - small) + kHalfPiRest : small, x);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / (1.0f + at * at);
  }
  static double exact(double x) { return std::atan(x); }
  static double exact_derivative(double at) { return 1 / (1 + at * at); }
};

}  // namespace lockstep::kernels
