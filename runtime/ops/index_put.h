// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

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
