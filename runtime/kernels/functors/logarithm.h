// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "runtime/base/host_device.h"
#include "runtime/kernels/unary.h"

// The logarithms of the list in unary.h, which says what each member is for. Within 3 units of the last place; -inf at
// 0, NaN below.

namespace lockstep::kernels {

/// x = 2^k m with sqrt(1/2) <= m < sqrt 2, for 0 < x < inf.
struct BinaryParts {
  std::int32_t k;
  float m;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline BinaryParts(float x) {
    const bool is_subnormal = x < 0x1p-126f;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(is_subnormal ? x * 0x1p23f : x);
    constexpr std::uint32_t kRootHalf = 0x3f3504f3u;
    const std::int32_t exponent = static_cast<std::int32_t>(bits - kRootHalf) >> 23;
    k = is_subnormal ? exponent - 23 : exponent;
    m = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23));
  }
};

/// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt 2, for 0 < x < inf; log(1 + f) = f + rest.
struct LogParts {
  float k;
  float f;
  float rest;

  /// rest = -f^2 / 2 + f^3 P(f). P minimises the largest relative error of log(1 + f) (3e-9; found by iteratively
  /// reweighted least squares against 40-digit values).
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE explicit inline LogParts(float x) {
    const BinaryParts of(x);
    k = static_cast<float>(of.k);
    f = of.m - 1.0f;
    float p = 0.06746640056f;
    p = p * f - 0.1167565212f;
    p = p * f + 0.1188816205f;
    p = p * f - 0.1240558922f;
    p = p * f + 0.1421955228f;
    p = p * f - 0.1666799635f;
    p = p * f + 0.2000211924f;
    p = p * f - 0.2500000894f;
    p = p * f + 0.3333331347f;
    rest = f * f * (f * p - 0.5f);
  }

  /// log x + correction, `correction` being small against it. log 2 is split so that k times its upper part is exact.
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float natural(float correction) const {
    return (k * 0x1.0bfbe8p-15f + (rest + correction)) + f + k * 0x1.62ep-1f;
  }
};

/// `y` where 0 < x < inf, and log x elsewhere.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float log_or_limit(float x, float y) {
  const float limit = x == 0.0f ? -INFINITY : x < 0.0f ? NAN : x;
  return x > 0.0f && x < INFINITY ? y : limit;
}

/// log(1 + x) for 0 <= x <= 1 as log u + c / u, where u is 1 + x rounded and c what the rounding cut off.
[[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float log1p_of_fraction(float x) {
  const float u = 1.0f + x;
  return LogParts(u).natural((x - (u - 1.0f)) / u);
}

struct Log {
  static constexpr Unary kUnary = Unary::kLog;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    return log_or_limit(x, LogParts(x).natural(0.0f));
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) { return dy / at; }
  static double exact(double x) { return std::log(x); }
  static double exact_derivative(double at) { return 1 / at; }
};

struct Log1p {
  static constexpr Unary kUnary = Unary::kLog1p;

  /// As log1p_of_fraction().
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const float u = 1.0f + x;
    const float cut = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    return log_or_limit(u, LogParts(u).natural(cut / u));
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / (1.0f + at);
  }
  static double exact(double x) { return std::log1p(x); }
  static double exact_derivative(double at) { return 1 / (1 + at); }
};

struct Log2 {
  static constexpr Unary kUnary = Unary::kLog2;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const LogParts of(x);
    return log_or_limit(x, of.k + (of.f + of.rest) * 1.44269504f);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / (at * 0.693147181f);
  }
  static double exact(double x) { return std::log2(x); }
  static double exact_derivative(double at) { return 1 / (at * std::numbers::ln2); }
};

struct Log10 {
  static constexpr Unary kUnary = Unary::kLog10;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    const LogParts of(x);
    // log10 2 is split as log 2 is.
    return log_or_limit(x, of.k * 0x1.344p-2f + ((of.f + of.rest) * 0.434294482f + of.k * 4.60503898e-6f));
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / (at * 2.30258509f);
  }
  static double exact(double x) { return std::log10(x); }
  static double exact_derivative(double at) { return 1 / (at * std::numbers::ln10); }
};

}  // namespace lockstep::kernels
