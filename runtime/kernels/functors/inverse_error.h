// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "runtime/kernels/functors/fast_exp.h"
#include "runtime/kernels/functors/logarithm.h"

// The inverse of the error function, of the list in unary.h.

namespace lockstep::kernels {

/// The number in (-1, 1) whose erf is x: infinite at the ends, NaN behind them. Within 4 units of the last place.
struct Erfinv {
  static constexpr Unary kUnary = Unary::kErfinv;

  /// x P(w) with w = -log((1 - x)(1 + x)), below 5 in w and from there in sqrt w. Both minimise the largest relative
  /// error (6e-9 and 2e-8; found by iteratively reweighted least squares against 40-digit values).
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float inside = (1.0f - x) * (1.0f + x);
    const float w = -log_or_limit(inside, LogParts(inside).natural(0.0f));
    const float t = w - 2.5f;
    float middle = -8.791057e-09f;
    middle = middle * t + 2.3232644e-08f;
    middle = middle * t + 4.6617066e-07f;
    middle = middle * t - 3.4627049e-06f;
    middle = middle * t - 4.9633477e-06f;
    middle = middle * t + 0.00021834444f;
    middle = middle * t - 0.0012527419f;
    middle = middle * t - 0.004177387f;
    middle = middle * t + 0.24664028f;
    middle = middle * t + 1.5014094f;
    const float s = std::sqrt(w < 0.0f ? 0.0f : w) - 3.0f;  // at 0 the logarithm may be -0
    float tail = 0.00010278256f;
    tail = tail * s - 0.00029635237f;
    tail = tail * s - 3.8579012e-05f;
    tail = tail * s + 0.0014684867f;
    tail = tail * s - 0.0036067716f;
    tail = tail * s + 0.0056933919f;
    tail = tail * s - 0.0076352875f;
    tail = tail * s + 0.0094445264f;
    tail = tail * s + 1.0016749f;
    tail = tail * s + 2.8329768f;
    const float finite = x * (w < 5.0f ? middle : tail);
    return inside > 0.0f ? finite : inside == 0.0f ? std::copysign(INFINITY, x) : NAN;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * (0.886226925f * exp_of_square(at, 1.0f));
  }

  /// Halley's method from near by, on erfc where the digits of erf are used up.
  static double exact(double x) {
    const double size = std::abs(x);
    if (!(size < 1)) return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
    const double w = -std::log1p(-size * size);
    double y = size < 0.9 ? size * (0.886 + 0.23 * w) : std::sqrt(w) - 0.3;
    for (int i = 0; i < 6; ++i) {
      const double residual = size < 0.5 ? std::erf(y) - size : (1 - size) - std::erfc(y);
      const double newton = residual * exact_derivative(y);
      y -= newton / (1 + y * newton);
    }
    return std::copysign(y, x);
  }
  static double exact_derivative(double at) { return std::exp(at * at) / (2 * std::numbers::inv_sqrtpi); }
};

}  // namespace lockstep::kernels
