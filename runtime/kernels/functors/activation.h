// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/kernels/functors/exp.h"

namespace lockstep {

/// NaN stays NaN, so that an overflow is still seen behind the activation.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float relu(float x) { return x < 0.0f ? 0.0f : x; }

/// dy where the input (or, as well, the output) is positive.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float relu_backward(float x, float dy) {
  return x > 0.0f ? dy : 0.0f;
}

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
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float gelu(float x) { return x * normal(x).cumulative; }

[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float gelu_backward(float x, float dy) {
  const Normal at_x = normal(x);
  return dy * (at_x.cumulative + x * at_x.density);
}

/// tanh's approximation of gelu, PyTorch's approximate="tanh": x * (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715
/// x^3).
///
/// (1 + tanh u) / 2 = 1 / (1 + e^(-2 u)), which e^(-2 |u|) gives without overflow and, for negative x, without losing
/// the tail's digits.
struct GeluTanh {
  float decay;       ///< e^(-2 |u|)
  float cumulative;  ///< (1 + tanh u) / 2

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit GeluTanh(float x) {
    const float twice = 1.59576912f * (x + 0.044715f * x * x * x);
    decay = fast_exp(-std::fabs(twice));
    const float larger = 1.0f / (1.0f + decay);
    cumulative = x < 0.0f ? decay * larger : larger;
  }
};

[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float gelu_tanh(float x) { return x * GeluTanh(x).cumulative; }

[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float gelu_tanh_backward(float x, float dy) {
  const GeluTanh at_x(x);
  const float once = 1.0f + at_x.decay;
  // cumulative' = cumulative (1 - cumulative) 2 u'. A select, since for huge x it is 0 times infinity.
  const float slope = at_x.decay / (once * once) * (1.59576912f + 0.214064449f * x * x);
  return dy * (at_x.cumulative + (at_x.decay > 0.0f ? x * slope : 0.0f));
}

}  // namespace lockstep
