// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::kernels {

/// The functions of two numbers that kernels apply to every pair of elements. functors/binary.h lists their formulas.
enum class Binary : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMaximum,  ///< NaN where either is NaN
  kMinimum,  ///< NaN where either is NaN
  kPrelu,    ///< a where a > 0, else b * a
  kAtan2,    ///< the angle of the point (b, a), in [-pi, pi]
  // Comparisons give 1 where they hold, else 0; but for kNotEqual they do not hold where either is NaN.
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};

constexpr bool is_comparison(Binary function) { return function >= Binary::kEqual; }

/// The function's name in messages.
constexpr std::string_view name_of(Binary function) {
  switch (function) {  // no default: the compiler asks for a new one
    case Binary::kAdd:
      return "add";
    case Binary::kSub:
      return "sub";
    case Binary::kMul:
      return "mul";
    case Binary::kDiv:
      return "div";
    case Binary::kPow:
      return "pow";
    case Binary::kMaximum:
      return "maximum";
    case Binary::kMinimum:
      return "minimum";
    case Binary::kPrelu:
      return "prelu";
    case Binary::kAtan2:
      return "atan2";
    case Binary::kEqual:
      return "eq";
    case Binary::kNotEqual:
      return "ne";
    case Binary::kLess:
      return "lt";
    case Binary::kLessEqual:
      return "le";
    case Binary::kGreater:
      return "gt";
    case Binary::kGreaterEqual:
      return "ge";
  }
  return "binary";
}

/// The functions of three numbers.
enum class Ternary : std::uint8_t {
  kWhere,            ///< b where a is not 0, else c
  kLerp,             ///< a + c (b - a)
  kAddcmul,          ///< a + parameter * b * c
  kAddcdiv,          ///< a + parameter * b / c
  kPreluBackward,    ///< the gradient of prelu(a, b) by a, c being that of its result: c where a > 0, else b * c
  kMaximumBackward,  ///< that of maximum(a, b) by a: c where a > b, c / 2 where a = b, else 0
};

/// A function of three numbers and its parameter.
struct TernaryFunction {
  Ternary kind = Ternary::kWhere;
  double parameter = 1;
};

}  // namespace lockstep::kernels
