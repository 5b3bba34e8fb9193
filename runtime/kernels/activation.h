// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/kernels/unary.h"

namespace lockstep::kernels {

/// The functions of one number that a layer may end in: those that a matrix product applies to its result, and whose
/// derivative it multiplies in.
enum class Activation : std::uint8_t {
  kNone = static_cast<std::uint8_t>(Unary::kIdentity),
  kRelu = static_cast<std::uint8_t>(Unary::kRelu),
  kGelu = static_cast<std::uint8_t>(Unary::kGelu),
  kGeluTanh = static_cast<std::uint8_t>(Unary::kGeluTanh),
  kTanh = static_cast<std::uint8_t>(Unary::kTanh),
  kSigmoid = static_cast<std::uint8_t>(Unary::kSigmoid),
};

constexpr Unary unary_of(Activation activation) { return static_cast<Unary>(activation); }

constexpr bool derivative_follows_from_output(Activation activation) {
  return derivative_follows_from_output(unary_of(activation));
}

}  // namespace lockstep::kernels
