// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "runtime/kernels/functors/exponential.h"
#include "runtime/kernels/functors/logarithm.h"
#include "runtime/kernels/unary.h"

// The functions of the list in unary.h that networks end their layers in. That header says what each member is for.

namespace lockstep::kernels {

struct Relu {
  static constexpr Unary kUnary = Unary::kRelu;

  /// NaN stays NaN, so that an overflow is still seen behind the activation.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return x < 0.0f ? 0.0f : x; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return at > 0.0f ? dy : 0.0f;
  }
  static double exact(double x) { return x < 0 ? 0 : x; }
  static double exact_derivative(double at) { return at > 0 ? 1 : 0; }
};

/// The standard normal distribution at x: density and cumulative probability.
struct Normal {
  float density;
  float cumulative;
};

/// Within 2e-7 of the exact values; the tail of negative x keeps its relative accuracy to 4e-6 down to -9.
///
/// The tail is e^(-x^2 / 2) W(|x|) with W(t) = e^(t^2 / 2) erfc(t / sqrt 2) / 2 = P(t) / Q(t). P and Q minimise the
/// largest relative error over t in [0, 13.2] (2e-7 below 4, 8e-7 above; found by iteratively reweighted least
/// squares).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline Normal normal(float x) {
  const float size = std::fabs(x);
  const bool is_normal = size < 13.2f;  // beyond, e^(-x^2 / 2) is subnormal
  const float gaussian = bounded_exp2(-0.721347520f * (x * x));
  const float p = ((0.0157138612f * size + 0.113900453f) * size + 0.352175593f) * size + 0.499999911f;
  const float q = (((0.0393968299f * size + 0.285218269f) * size + 0.926489174f) * size + 1.50222576f) * size + 1.0f;
  const float tail = is_normal ? gaussian * p / q : 0.0f;
  return {is_normal ? 0.398942280f * gaussian : 0.0f, x < 0.0f ? tail : 1.0f - tail};
}

/// Within 3 units of the last place: x + x P(x^2) below 1, 1 - 2^Q(x) from there to 4.1, and 1 behind it. P and Q
/// minimise the largest relative error of erf (3e-9 and 2e-9; found by iteratively reweighted least squares against
/// 40-digit values).
struct Erf {
  static constexpr Unary kUnary = Unary::kErf;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float z = x * x;
    float p = 7.853876014e-05f;
    p = p * z - 0.0008010198362f;
    p = p * z + 0.005188328214f;
    p = p * z - 0.02685381286f;
    p = p * z + 0.1128358543f;
    p = p * z - 0.3761262596f;
    p = p * z + 0.1283791661f;
    const float size = std::fabs(x);
    const float t = size > 4.1f ? 4.1f : size;
    float q = 0.0002706564162f;
    q = q * t - 0.004270541177f;
    q = q * t + 0.0315800751f;
    q = q * t - 0.1489123821f;
    q = q * t - 0.9204570808f;
    q = q * t - 1.626164929f;
    q = q * t - 0.0004624914956f;
    const float large = 1.0f - bounded_exp2(q);
    return size >= 1.0f ? std::copysign(large, x) : x + x * p;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * (1.12837917f * exp_of_square(at, -1.0f));
  }
  static double exact(double x) { return std::erf(x); }
  static double exact_derivative(double at) { return 2 * std::numbers::inv_sqrtpi * std::exp(-at * at); }
};

/// x * (1 + erf(x / sqrt 2)) / 2
struct Gelu {
  static constexpr Unary kUnary = Unary::kGelu;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return x * normal(x).cumulative; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    const Normal at_x = normal(at);
    return dy * (at_x.cumulative + at * at_x.density);
  }
  static double exact(double x) { return x * (1 + std::erf(x / std::numbers::sqrt2)) / 2; }
  static double exact_derivative(double at) {
    const double density = std::exp(-at * at / 2) / std::sqrt(2 * std::numbers::pi);
    return (1 + std::erf(at / std::numbers::sqrt2)) / 2 + at * density;
  }
};

/// tanh's approximation of gelu, PyTorch's approximate="tanh": x * (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715
/// x^3).
struct GeluTanh {
  static constexpr Unary kUnary = Unary::kGeluTanh;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return x * Parts(x).cumulative; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    const Parts at_x(at);
    const float once = 1.0f + at_x.decay;
    // cumulative' = cumulative (1 - cumulative) 2 u'. A select, since for huge x it is 0 times infinity.
    const float slope = at_x.decay / (once * once) * (1.59576912f + 0.214064449f * at * at);
    return dy * (at_x.cumulative + (at_x.decay > 0.0f ? at * slope : 0.0f));
  }
  static double exact(double x) { return x * (1 + std::tanh(argument(x))) / 2; }
  static double exact_derivative(double at) {
    const double tanh = std::tanh(argument(at));
    const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * kCubic * at * at);
    return (1 + tanh) / 2 + at * (1 - tanh * tanh) / 2 * slope;
  }

 private:
  /// (1 + tanh u) / 2 = 1 / (1 + e^(-2 u)), which e^(-2 |u|) gives without overflow and, for negative x, without losing
  /// the tail's digits.
  struct Parts {
    float decay;       ///< e^(-2 |u|)
    float cumulative;  ///< (1 + tanh u) / 2

    [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline Parts(float x) {
      const float twice = 1.59576912f * (x + 0.044715f * x * x * x);
      decay = fast_exp(-std::fabs(twice));
      const float larger = 1.0f / (1.0f + decay);
      cumulative = x < 0.0f ? decay * larger : larger;
    }
  };

  static constexpr double kCubic = 0.044715;
  static double argument(double x) { return std::sqrt(2 / std::numbers::pi) * (x + kCubic * x * x * x); }
};

/// Within 3 units of the last place. Below 0.625 it is x + x^3 P(x^2), P minimising the largest relative error of tanh
/// there (5e-9; found by iteratively reweighted least squares against 50-digit values); above, 1 - 2 / (1 + e^(2 x)).
struct Tanh {
  static constexpr Unary kUnary = Unary::kTanh;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float size = std::fabs(x);
    const float z = x * x;
    const float p =
        (((-0.005704982672f * z + 0.02063908428f) * z - 0.05373971537f) * z + 0.1333144158f) * z - 0.3333328068f;
    const float small = x + x * z * p;
    const float decay = fast_exp(-2.0f * size);
    const float large = 1.0f - 2.0f * decay / (1.0f + decay);
    return size < 0.625f ? small : x < 0.0f ? -large : large;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * ((1.0f - at) * (1.0f + at));
  }
  static double exact(double x) { return std::tanh(x); }
  static double exact_derivative(double at) { return (1 - at) * (1 + at); }
};

/// 1 / (1 + e^-x)
struct Sigmoid {
  static constexpr Unary kUnary = Unary::kSigmoid;

  /// Computed from e^-|x|, so that negative x keep the tail's digits.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float decay = fast_exp(-std::fabs(x));
    const float larger = 1.0f / (1.0f + decay);
    return x < 0.0f ? decay * larger : larger;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy * (at * (1.0f - at));
  }
  static double exact(double x) { return 1 / (1 + std::exp(-x)); }
  static double exact_derivative(double at) { return at * (1 - at); }
};

/// x / (1 + e^-x)
struct Silu {
  static constexpr Unary kUnary = Unary::kSilu;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return x * Sigmoid::value(x); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    const float decay = fast_exp(-std::fabs(at));
    const float larger = 1.0f / (1.0f + decay);
    const float smaller = decay * larger;
    const float sigmoid = at < 0.0f ? smaller : larger;
    const float rest = at < 0.0f ? larger : smaller;  // 1 - sigmoid
    return dy * (sigmoid * (1.0f + at * rest));
  }
  static double exact(double x) { return x / (1 + std::exp(-x)); }
  static double exact_derivative(double at) {
    const double sigmoid = 1 / (1 + std::exp(-at));
    return sigmoid * (1 + at * (1 - sigmoid));
  }
};

/// x where x > 0, else slope * x
struct LeakyRelu {
  static constexpr Unary kUnary = Unary::kLeakyRelu;

  double slope;

  explicit LeakyRelu(const UnaryFunction& function) : slope(function.first) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float value(float x) const {
    return x > 0.0f ? x : static_cast<float>(slope) * x;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float backward(float at, float dy) const {
    return at > 0.0f ? dy : static_cast<float>(slope) * dy;
  }
  double exact(double x) const { return x > 0 ? x : slope * x; }
  double exact_derivative(double at) const { return at > 0 ? 1 : slope; }
};

/// x where x > 0, else alpha * (e^x - 1)
struct Elu {
  static constexpr Unary kUnary = Unary::kElu;

  double alpha;

  explicit Elu(const UnaryFunction& function) : alpha(function.first) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float value(float x) const {
    return x > 0.0f ? x : static_cast<float>(alpha) * Expm1::value(x);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float backward(float at, float dy) const {
    return at > 0.0f ? dy : dy * static_cast<float>(alpha) * scaled_exp(at, 0);
  }
  double exact(double x) const { return x > 0 ? x : alpha * std::expm1(x); }
  double exact_derivative(double at) const { return at > 0 ? 1 : alpha * std::exp(at); }
};

/// log(1 + e^(beta x)) / beta; x where beta x > threshold, where the two differ by no more than e^-threshold / beta.
struct Softplus {
  static constexpr Unary kUnary = Unary::kSoftplus;

  double beta;
  double threshold;

  explicit Softplus(const UnaryFunction& function) : beta(function.first), threshold(function.second) {}

  /// Computed from e^-|beta x|, which does not overflow.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float value(float x) const {
    const float scaled = static_cast<float>(beta) * x;
    const float rest = log1p_of_fraction(scaled_exp(-std::fabs(scaled), 0));
    const float soft = ((scaled > 0.0f ? scaled : 0.0f) + rest) / static_cast<float>(beta);
    return scaled > static_cast<float>(threshold) ? x : soft;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float backward(float at, float dy) const {
    const float scaled = static_cast<float>(beta) * at;
    return scaled > static_cast<float>(threshold) ? dy : dy * Sigmoid::value(scaled);
  }
  double exact(double x) const {
    const double scaled = beta * x;
    return scaled > threshold ? x : (std::max(scaled, 0.0) + std::log1p(std::exp(-std::abs(scaled)))) / beta;
  }
  double exact_derivative(double at) const { return beta * at > threshold ? 1 : Sigmoid::exact(beta * at); }
};

}  // namespace lockstep::kernels
