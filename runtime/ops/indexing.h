// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

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

/// x with `values` at the places that int64 `indices` name: index d of a place is for dimension d of x, and the
/// dimensions behind them are whole. Indices are broadcast to one shape, values to that shape followed by x's other
/// extents. Negative indices count from the end. Where a place is named several times, its last value stays, and the
/// others get no gradient; with `accumulate` values are added to x's elements, in their order.
///
/// Any dtype; accumulate takes floating ones. Throws UsageError for x and values of different dtypes, and, on the CPU,
/// for an index outside x; on a GPU, which nobody waits for, its value is left out. A mask names places of masked_fill.
[[nodiscard]] Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                               bool accumulate = false);

}  // namespace lockstep::ops
