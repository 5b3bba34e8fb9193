// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/broadcast.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::kernels {

namespace {

/// Extent of a dimension that counts from the last, 0 being that; 1 where it is missing.
std::int64_t extent_from_last(const Shape& shape, int d) { return d < shape.rank() ? shape[shape.rank() - 1 - d] : 1; }

}  // namespace

Shape broadcast_shape(std::string_view operation, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (int d = 0; d < rank; ++d) {
    const std::int64_t of_a = extent_from_last(a, d), of_b = extent_from_last(b, d);
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      throw ShapeError(std::string(operation) + ": " + a.str() + " and " + b.str() +
                       " cannot be broadcast: from the last dimension on, extents must be equal or one of them 1");
    }
    extents[static_cast<std::size_t>(rank - 1 - d)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(extents);
}

BroadcastWalk::BroadcastWalk(const Shape& out, std::initializer_list<Shape> operands) {
  // Dimensions from the first on, each appended as one of its own or to the one before it.
  std::int64_t of_dimension[Shape::kMaxRank][kMaxOperands] = {};
  {
    int operand = 0;
    for (const Shape& shape : operands) {
      std::int64_t stride = 1;
      for (int d = 0; d < out.rank(); ++d) {
        const std::int64_t extent = extent_from_last(shape, d);
        of_dimension[out.rank() - 1 - d][operand] = extent == 1 ? 0 : stride;
        stride *= extent;
      }
      ++operand;
    }
  }
  for (int d = 0; d < out.rank(); ++d) {
    if (out[d] == 1) continue;
    bool joins = rank > 0;
    for (int operand = 0; joins && operand < kMaxOperands; ++operand) {
      joins = strides[operand][rank - 1] == of_dimension[d][operand] * out[d];
    }
    if (!joins) ++rank;
    extents[rank - 1] = joins ? extents[rank - 1] * out[d] : out[d];
    for (int operand = 0; operand < kMaxOperands; ++operand) strides[operand][rank - 1] = of_dimension[d][operand];
  }
}

bool BroadcastWalk::is_whole(int operand) const {
  std::int64_t dense = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (strides[operand][d] != dense) return false;
    dense *= extents[d];
  }
  return true;
}

}  // namespace lockstep::kernels
