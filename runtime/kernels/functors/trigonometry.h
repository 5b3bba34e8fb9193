// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/kernels/unary.h"

// The trigonometric functions of the list in unary.h, which says what each member is for. Within 4 units of the last
// place.

namespace lockstep::kernels {

/// x = n pi / 2 + r with |r| <= pi / 4.
struct Angle {
  /// Up to here r is exact to a float. Multiples of pi / 2 are subtracted in double, in three parts of which n times
  /// the first two is exact.
  static constexpr float kLimit = 0x1p29f;

  float r;
  std::uint32_t quadrant;  ///< n modulo 2^32

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline Angle(float x) {
    constexpr double kRound = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
    const double wide = static_cast<double>(x);
    const double shifted = wide * 0x1.45f306dc9c883p-1 + kRound;
    const double n = shifted - kRound;
    r = static_cast<float>(((wide - n * 0x1.921fb4p0) - n * 0x1.4442dp-24) - n * 0x1.8469898cc517p-48);
    quadrant = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(shifted));
  }

  // The polynomials minimise the largest relative error (1e-8 and 2e-10; found by iteratively reweighted least squares
  // against 40-digit values).
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float sin_r() const {
    const float z = r * r;
    return r + r * z * ((-0.00019514632f * z + 0.008332155645f) * z - 0.1666665524f);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float cos_r() const {
    const float z = r * r;
    return 1.0f - 0.5f * z + z * z * ((2.443241283e-05f * z - 0.001388730947f) * z + 0.04166664556f);
  }
};

/// sin(x + quarters pi / 2) for |x| <= Angle::kLimit.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float sin_of(float x, std::uint32_t quarters) {
  const Angle angle(x);
  const std::uint32_t quadrant = angle.quadrant + quarters;
  const float value = (quadrant & 1u) != 0 ? angle.cos_r() : angle.sin_r();
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (quadrant & 2u) << 30);
}

struct Sin {
  static constexpr Unary kUnary = Unary::kSin;
  static constexpr float kLimit = Angle::kLimit;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return sin_of(x, 0); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * sin_of(at, 1);
  }
  LOCKSTEP_HOST_DEVICE static double exact(double x) { return std::sin(x); }
  LOCKSTEP_HOST_DEVICE static double exact_derivative(double at) { return std::cos(at); }
};

struct Cos {
  static constexpr Unary kUnary = Unary::kCos;
  static constexpr float kLimit = Angle::kLimit;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return sin_of(x, 1); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * sin_of(at, 2);
  }
  LOCKSTEP_HOST_DEVICE static double exact(double x) { return std::cos(x); }
  LOCKSTEP_HOST_DEVICE static double exact_derivative(double at) { return -std::sin(at); }
};

struct Tan {
  static constexpr Unary kUnary = Unary::kTan;
  static constexpr float kLimit = Angle::kLimit;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const Angle angle(x);
    const float sin = angle.sin_r(), cos = angle.cos_r();
    const bool odd = (angle.quadrant & 1u) != 0;
    return (odd ? -cos : sin) / (odd ? sin : cos);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    const float cos = sin_of(at, 1);
    return dy / (cos * cos);
  }
  LOCKSTEP_HOST_DEVICE static double exact(double x) { return std::tan(x); }
  LOCKSTEP_HOST_DEVICE static double exact_derivative(double at) {
    const double tan = std::tan(at);
    return 1 + tan * tan;
  }
};

/// asin of s in [0, 1/2] from s^2: s + s^3 P(s^2). P minimises the largest relative error (6e-9; found as above).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float asin_of_small(float s, float z) {
  float p = 0.04216630384f;
  p = p * z + 0.02417951636f;
  p = p * z + 0.04547037557f;
  p = p * z + 0.07495297492f;
  p = p * z + 0.166667521f;
  return s + s * z * p;
}

/// asin |x| = part where |x| <= 1/2, else pi / 2 - 2 part: there by the half angle, asin sqrt((1 - |x|) / 2). NaN where
/// |x| > 1.
struct ArcSin {
  bool is_small;
  float part;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline ArcSin(float x) {
    const float size = std::fabs(x);
    is_small = size <= 0.5f;
    const float z = is_small ? x * x : 0.5f - 0.5f * size;
    part = asin_of_small(is_small ? size : std::sqrt(z), z);
  }
};

/// pi / 2 as a float and what that leaves of it.
inline constexpr float kHalfPi = 1.57079637f;
inline constexpr float kHalfPiRest = -4.37113883e-8f;

struct Asin {
  static constexpr Unary kUnary = Unary::kAsin;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const ArcSin of(x);
    return std::copysign(of.is_small ? of.part : (kHalfPi - 2.0f * of.part) + kHalfPiRest, x);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / std::sqrt((1.0f - at) * (1.0f + at));
  }
  static double exact(double x) { return std::asin(x); }
  static double exact_derivative(double at) { return 1 / std::sqrt((1 - at) * (1 + at)); }
};

struct Acos {
  static constexpr Unary kUnary = Unary::kAcos;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const ArcSin of(x);
    const float middle = (kHalfPi - std::copysign(of.part, x)) + kHalfPiRest;
    const float twice = 2.0f * of.part;
    const float end = x < 0.0f ? (2.0f * kHalfPi - twice) + 2.0f * kHalfPiRest : twice;
    return of.is_small ? middle : end;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return -dy / std::sqrt((1.0f - at) * (1.0f + at));
  }
  static double exact(double x) { return std::acos(x); }
  static double exact_derivative(double at) { return -1 / std::sqrt((1 - at) * (1 + at)); }
};

}  // namespace lockstep::kernels
