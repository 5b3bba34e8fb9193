// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Places in a tensor: index (i_0, i_1, ...) is the element offset + sum of i_d * strides[d] behind the first one.
struct Walk {
  std::int64_t offset = 0;
  std::array<std::int64_t, Shape::kMaxRank> strides{};
};

/// The walk over all elements of a dense tensor of this shape, in their order.
Walk dense_walk(const Shape& shape);

/// The kernel behind operations that only move elements: transposition, slices, concatenation, broadcasting, reversal.
struct Movement {
  /// This family's functions of the backend for tensors on `device`.
  static const Movement& on(Device device);

  /// Copies in's element at from(i) to out's element at to(i), for every index i below `extents`. Same dtype, any of
  /// them. Strides of `from` may be 0 (one element is copied to many places) or negative; those of `to` are positive,
  /// and no two indices may meet in one place. The elements of out that no index reaches stay as they are. A place
  /// outside a tensor is a ShapeError.
  void (*copy_strided)(const Tensor& in, const Walk& from, const Shape& extents, const Tensor& out, const Walk& to);
};

}  // namespace lockstep::kernels
