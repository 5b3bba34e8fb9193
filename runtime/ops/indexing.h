// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

// Reading and adding at places that int64 indices name. An index outside its dimension is a UsageError on the CPU; on a
// GPU, which nobody waits for, it reads NaN (-1 of an integer dtype) and adds nothing.

namespace lockstep::ops {

/// x at indices [m] along a dimension, whose extent becomes m. Any dtype.
[[nodiscard]] Tensor index_select(const Tensor& x, int dim, const Tensor& indices);
/// Each element of the result, which has the shape of `indices`, is x at the same place but for dimension `dim`, where
/// it is at the index. Other extents of `indices` may be smaller than x's. Any dtype.
[[nodiscard]] Tensor gather(const Tensor& x, int dim, const Tensor& indices);
/// The gradient of index_select and gather: `extent` zeros along a dimension with x added at its indices, which are [m]
/// or have x's shape. Elements that meet in one place are added in the order of x, in float32, whatever the number of
/// threads.
[[nodiscard]] Tensor scatter_add(const Tensor& x, int dim, const Tensor& indices, std::int64_t extent);
/// x, and `value` where the mask (bool), which is broadcast, holds.
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// [..., classes]: 1 at each index of int64 `indices` [...] and 0 elsewhere.
[[nodiscard]] Tensor one_hot(const Tensor& indices, std::int64_t classes, DType dtype = DType::kFloat32);

}  // namespace lockstep::ops
