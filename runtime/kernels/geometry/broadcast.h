// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "runtime/base/host_device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// The shape that two operands are broadcast to by NumPy's rules: dimensions are compared from the last on, and must be
/// equal, or one of them 1 or missing. Throws ShapeError, which names the operation.
Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b);

/// How up to three operands are read for an output in row-major order. Neighbouring dimensions that every operand walks
/// alike are one.
struct BroadcastWalk {
  static constexpr int kMaxOperands = 3;

  int rank = 0;
  std::int64_t extents[Shape::kMaxRank] = {};
  std::int64_t strides[kMaxOperands][Shape::kMaxRank] = {};  ///< in elements; 0 where the operand is broadcast

  /// Each operand must broadcast to `out`.
  BroadcastWalk(const Shape& out, std::initializer_list<Shape> operands);

  /// Whether the operand's elements are read in their own order, each once.
  bool is_whole(int operand) const;
  /// Where the operand stands for element `index` of the output, in elements from its first one.
  LOCKSTEP_HOST_DEVICE std::int64_t offset(int operand, std::int64_t index) const {
    std::int64_t at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += index % extents[d] * strides[operand][d];
      index /= extents[d];
    }
    return at + index * strides[operand][0];
  }
};

}  // namespace lockstep::kernels
