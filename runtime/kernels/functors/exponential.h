// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/kernels/functors/fast_exp.h"
#include "runtime/kernels/unary.h"

// The exponential functions of the list in unary.h, which says what each member is for. Within 4 units of the last
// place.

namespace lockstep::kernels {

struct Exp {
  static constexpr Unary kUnary = Unary::kExp;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return scaled_exp(x, 0); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) { return dy * at; }
  static double exact(double x) { return std::exp(x); }
  static double exact_derivative(double at) { return at; }
};

struct Expm1 {
  static constexpr Unary kUnary = Unary::kExpm1;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    return std::fabs(x) < 1e-30f ? x : 4.0f * quarter_expm1(x);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * scaled_exp(at, 0);
  }
  static double exact(double x) { return std::expm1(x); }
  static double exact_derivative(double at) { return std::exp(at); }
};

/// (e^x - e^-x) / 2 by t = e^|x| - 1, which keeps the digits of small x: (t + t / (1 + t)) / 2.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float sinh_of(float x) {
  const float size = std::fabs(x);
  const float quarter = quarter_expm1(size);
  const float result = 2.0f * quarter + 2.0f * (quarter / (1.0f + 4.0f * quarter));
  // Infinity over infinity is no number.
  const float finite = quarter > 8e37f ? 2.0f * quarter : result;
  return size < 1e-30f ? x : std::copysign(finite, x);
}

/// (e^x + e^-x) / 2
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float cosh_of(float x) {
  const float half = 2.0f * scaled_exp(std::fabs(x), -2);
  return half + 0.25f / half;
}

struct Sinh {
  static constexpr Unary kUnary = Unary::kSinh;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return sinh_of(x); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * cosh_of(at);
  }
  static double exact(double x) { return std::sinh(x); }
  static double exact_derivative(double at) { return std::cosh(at); }
};

struct Cosh {
  static constexpr Unary kUnary = Unary::kCosh;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return cosh_of(x); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * sinh_of(at);
  }
  static double exact(double x) { return std::cosh(x); }
  static double exact_derivative(double at) { return std::sinh(at); }
};

}  // namespace lockstep::kernels
