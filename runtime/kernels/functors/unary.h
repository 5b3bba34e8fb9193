// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/functors/arctangent.h"
#include "runtime/kernels/functors/exponential.h"
#include "runtime/kernels/functors/inverse_error.h"
#include "runtime/kernels/functors/logarithm.h"
#include "runtime/kernels/functors/rounding.h"
#include "runtime/kernels/functors/trigonometry.h"
#include "runtime/kernels/unary.h"

// The functions of one number that kernels apply to every element, one struct each. One with parameters is constructed
// from a UnaryFunction.
//   kUnary               its name in the interface
//   value(float)         within some units of the last place, free of branches and calls, for loops and kernels
//   backward(at, dy)     dy times the derivative; `at` is the output where derivative_follows_from_output(kUnary), else
//                        the input
//   exact(double), exact_derivative(double at)   for float64 and as the oracle of the others
//   bits(uint16)         where given, value() of 16-bit numbers by their bits: exact in each of their dtypes
//   kLimit               where given, value() and backward() hold for |x| <= kLimit alone; elsewhere the exact ones do
// `Unaries` at the end lists them. Every device has one loop over that list.

namespace lockstep::kernels {

struct Identity {
  static constexpr Unary kUnary = Unary::kIdentity;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return x; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float, float dy) { return dy; }
  static double exact(double x) { return x; }
  static double exact_derivative(double) { return 1; }
};

struct Neg {
  static constexpr Unary kUnary = Unary::kNeg;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return -x; }
  [[gnu::always_inline]] static inline std::uint16_t bits(std::uint16_t x) {
    return static_cast<std::uint16_t>(x ^ 0x8000u);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float, float dy) { return -dy; }
  static double exact(double x) { return -x; }
  static double exact_derivative(double) { return -1; }
};

/// Its derivative at 0 is 0, as PyTorch's.
struct Abs {
  static constexpr Unary kUnary = Unary::kAbs;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::fabs(x); }
  [[gnu::always_inline]] static inline std::uint16_t bits(std::uint16_t x) {
    return static_cast<std::uint16_t>(x & 0x7fffu);
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return at > 0.0f ? dy : at < 0.0f ? -dy : 0.0f;
  }
  static double exact(double x) { return std::abs(x); }
  static double exact_derivative(double at) { return at > 0 ? 1 : at < 0 ? -1 : 0; }
};

struct Sqrt {
  static constexpr Unary kUnary = Unary::kSqrt;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::sqrt(x); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return dy / (2.0f * at);
  }
  static double exact(double x) { return std::sqrt(x); }
  static double exact_derivative(double at) { return 1 / (2 * at); }
};

struct Rsqrt {
  static constexpr Unary kUnary = Unary::kRsqrt;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return 1.0f / std::sqrt(x); }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return -0.5f * dy * at * at * at;  // in this order at^3 cannot overflow alone
  }
  static double exact(double x) { return 1 / std::sqrt(x); }
  static double exact_derivative(double at) { return -at * at * at / 2; }
};

struct Reciprocal {
  static constexpr Unary kUnary = Unary::kReciprocal;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return 1.0f / x; }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float at, float dy) {
    return -dy * (at * at);
  }
  static double exact(double x) { return 1 / x; }
  static double exact_derivative(double at) { return -at * at; }
};

/// NaN stays NaN. The derivative is 0 at the ends, as PyTorch's.
struct Clamp {
  static constexpr Unary kUnary = Unary::kClamp;

  double low;
  double high;

  explicit Clamp(const UnaryFunction& function) : low(function.first), high(function.second) {}

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float value(float x) const {
    const float raised = x < static_cast<float>(low) ? static_cast<float>(low) : x;
    return raised > static_cast<float>(high) ? static_cast<float>(high) : raised;
  }
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline float backward(float at, float dy) const {
    return at > static_cast<float>(low) && at < static_cast<float>(high) ? dy : 0.0f;
  }
  double exact(double x) const {
    const double raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  double exact_derivative(double at) const { return at > low && at < high ? 1 : 0; }
};

template <class... Function>
struct UnaryList {};

using Unaries = UnaryList<Identity, Relu, Gelu, GeluTanh, Tanh, Sigmoid, Neg, Abs, Sqrt, Rsqrt, Reciprocal, Exp, Expm1,
                          Log, Log1p, Log2, Log10, Sin, Cos, Tan, Sinh, Cosh, Asin, Acos, Atan, Erf, Erfinv, Silu,
                          LeakyRelu, Elu, Softplus, Clamp, Sign, Floor, Ceil, Round, Trunc>;

/// Whether value() and backward() hold for |x| <= kLimit alone: the exact ones take over elsewhere.
template <class Function>
concept HasLimit = requires {
  Function::kLimit;
};

/// Whether 16-bit numbers need not be widened.
template <class Function>
concept HasBits = requires(std::uint16_t x) {
  Function::bits(x);
};

/// Calls visit(f) with the struct of a function. Throws UsageError for one that is not in the list.
template <class Visit>
void visit_unary(const UnaryFunction& function, Visit visit) {
  const auto construct = [&]<class F>(std::type_identity<F>) {
    if constexpr (std::constructible_from<F, const UnaryFunction&>) {
      return F(function);
    } else {
      return F{};
    }
  };
  const auto among = [&]<class... F>(UnaryList<F...>) {
    return ((function.kind == F::kUnary && (visit(construct(std::type_identity<F>{})), true)) || ...);
  };
  if (!among(Unaries{})) {
    throw UsageError("function " + std::to_string(static_cast<int>(function.kind)) + " is not in the list Unaries");
  }
}

}  // namespace lockstep::kernels
