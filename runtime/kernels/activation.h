// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// A function of one number, applied to every element. functors/activation.h has the formulas.
enum class Activation : std::uint8_t {
  kNone,      ///< x
  kRelu,      ///< max(x, 0); NaN stays
  kGelu,      ///< x (1 + erf(x / sqrt 2)) / 2
  kGeluTanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, gelu's approximation
  kTanh,
  kSigmoid,  ///< 1 / (1 + e^-x)
};

/// Whether a backward pass computes the activation's derivative from the output, so that the input need not be kept.
/// Where not, it computes it from the input.
constexpr bool derivative_follows_from_output(Activation activation) {
  switch (activation) {  // no default: the compiler asks for a new one
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kTanh:
    case Activation::kSigmoid:
      return true;
    case Activation::kGelu:
    case Activation::kGeluTanh:
      return false;
  }
  return false;
}

}  // namespace lockstep::kernels
