// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// The functions of one number that kernels apply to every element. functors/unary.h lists their formulas; `first` and
/// `second` are the parameters of a UnaryFunction.
enum class Unary : std::uint8_t {
  kIdentity,
  kRelu,      ///< max(x, 0); NaN stays
  kGelu,      ///< x (1 + erf(x / sqrt 2)) / 2
  kGeluTanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, gelu's approximation
  kTanh,
  kSigmoid,  ///< 1 / (1 + e^-x)
  kNeg,
  kAbs,
  kSqrt,
  kRsqrt,       ///< 1 / sqrt x
  kReciprocal,  ///< 1 / x
  kExp,
  kExpm1,  ///< e^x - 1
  kLog,
  kLog1p,  ///< log(1 + x)
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kAtan,
  kErf,
  kErfinv,     ///< the number whose erf is x
  kSilu,       ///< x / (1 + e^-x)
  kLeakyRelu,  ///< x where x > 0, else first * x
  kElu,        ///< x where x > 0, else first * (e^x - 1)
  kSoftplus,   ///< log(1 + e^(first * x)) / first; x where first * x > second
  kClamp,      ///< first where x < first, second where x > second, else x; NaN stays
  kSign,       ///< 1, 0 or -1; 0 for NaN
  kFloor,
  kCeil,
  kRound,  ///< to the nearest whole number, a half to the even one
  kTrunc,  ///< towards 0
};

/// A function of one number and its parameters.
struct UnaryFunction {
  Unary kind = Unary::kIdentity;
  double first = 0;
  double second = 0;

  constexpr UnaryFunction(Unary function, double first_parameter = 0, double second_parameter = 0)
      : kind(function), first(first_parameter), second(second_parameter) {}
};

/// Whether a backward pass computes the function's derivative from the output, so that the input need not be kept.
/// Where not, it computes it from the input.
constexpr bool derivative_follows_from_output(Unary function) {
  switch (function) {
    case Unary::kIdentity:
    case Unary::kRelu:
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kNeg:
    case Unary::kSqrt:
    case Unary::kRsqrt:
    case Unary::kReciprocal:
    case Unary::kExp:
    case Unary::kErfinv:
    case Unary::kSign:
    case Unary::kFloor:
    case Unary::kCeil:
    case Unary::kRound:
    case Unary::kTrunc:
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep::kernels
