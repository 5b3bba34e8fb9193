// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "runtime/base/host_device.h"
#include "runtime/kernels/unary.h"

// The functions of the list in unary.h that give whole numbers. They are exact, and their derivative is 0 everywhere,
// at the jumps too, as PyTorch's.

namespace lockstep::kernels {

/// The derivative of a function that is constant piece by piece, whatever dy is.
struct FlatPieces {
  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float backward(float, float) { return 0.0f; }
  static double exact_derivative(double) { return 0; }
};

/// 0 for NaN, as PyTorch's.
struct Sign : FlatPieces {
  static constexpr Unary kUnary = Unary::kSign;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) {
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
  }
  static double exact(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
};

struct Floor : FlatPieces {
  static constexpr Unary kUnary = Unary::kFloor;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::floor(x); }
  static double exact(double x) { return std::floor(x); }
};

struct Ceil : FlatPieces {
  static constexpr Unary kUnary = Unary::kCeil;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::ceil(x); }
  static double exact(double x) { return std::ceil(x); }
};

/// A half goes to the even neighbour: so the processor rounds, whose mode nobody changes.
struct Round : FlatPieces {
  static constexpr Unary kUnary = Unary::kRound;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::rint(x); }
  static double exact(double x) { return std::rint(x); }
};

struct Trunc : FlatPieces {
  static constexpr Unary kUnary = Unary::kTrunc;

  [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE static inline float value(float x) { return std::trunc(x); }
  static double exact(double x) { return std::trunc(x); }
};

}  // namespace lockstep::kernels
