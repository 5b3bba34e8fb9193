// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <numbers>
#include <string>

#include "runtime/kernels/activation.h"
#include "runtime/kernels/functors/exp.h"
#include "runtime/tensor/error.h"

// The functions of one number that kernels apply to every element, one struct each:
//   kActivation          its name in the interface
//   value(float)         within some units of the last place, free of branches and calls, for loops and kernels
//   backward(at, dy)     dy times the derivative; `at` is the output where derivative_follows_from_output(kActivation),
//                        else the input
//   exact(double), exact_derivative(double at)   for float64 and as the oracle of the others
// `Activations` at the end lists them. Every device has one loop over that list.

namespace lockstep::kernels {

struct Relu {
  static constexpr Activation kActivation = Activation::kRelu;

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

/// Within 2e-7 of the exact values; the tail of negative x keeps its relative accuracy to about 1e-6.
///
/// With t = |x| / sqrt 2 the tail is erfc(t) / 2 = exp(-x^2 / 2) erfcx(t) / 2, and erfcx(t) = u P(u) with
/// u = 1 / (1 + 0.4 t). P is the minimax polynomial of degree 8 of the relative error over t in [0, 10.2] (6.4e-8;
/// found by the Remez exchange against 40-digit values).
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline Normal normal(float x) {
  const float gaussian = fast_exp(-0.5f * x * x);
  const float u = 1.0f / (1.0f + 0.282842712f * std::fabs(x));
  float p = 0.04161297004f;
  p = p * u - 0.1420821249f;
  p = p * u + 0.08765782228f;
  p = p * u + 0.08373222468f;
  p = p * u + 0.08270363346f;
  p = p * u + 0.1921275867f;
  p = p * u + 0.2022139829f;
  p = p * u + 0.2263970124f;
  p = p * u + 0.2256369558f;
  const float tail = 0.5f * gaussian * u * p;
  return {0.398942280f * gaussian, x < 0.0f ? tail : 1.0f - tail};
}

/// x * (1 + erf(x / sqrt 2)) / 2
struct Gelu {
  static constexpr Activation kActivation = Activation::kGelu;

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
  static constexpr Activation kActivation = Activation::kGeluTanh;

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
  static constexpr Activation kActivation = Activation::kTanh;

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
  static constexpr Activation kActivation = Activation::kSigmoid;

  /// By e^-|x|, so that negative x keep the tail's digits.
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

template <class... Function>
struct ActivationList {};

/// Every activation that computes something: all but kNone.
using Activations = ActivationList<Relu, Gelu, GeluTanh, Tanh, Sigmoid>;

/// Calls visit(function) with the struct of an activation. Throws UsageError for one that is not in the list.
template <class Visit>
void visit_activation(Activation activation, Visit visit) {
  const auto among = [&]<class... Function>(ActivationList<Function...>) {
    return ((activation == Function::kActivation && (visit(Function{}), true)) || ...);
  };
  if (!among(Activations{})) {
    throw UsageError("activation " + std::to_string(static_cast<int>(activation)) + " is not in the list Activations");
  }
}

}  // namespace lockstep::kernels
