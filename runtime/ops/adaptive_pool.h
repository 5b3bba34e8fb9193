// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"

// Pooling to given extents. Along a dimension of n elements, of which k are to be left, element i is made of elements
// floor(i n / k) to ceil((i + 1) n / k) - 1, as in PyTorch: windows of one extent where k divides n, otherwise of two,
// which overlap; for k > n elements are repeated. Throws ShapeError unless `extents` has one extent >= 1 for each of
// the 1 to 3 spatial dimensions, none of which is empty.

namespace lockstep::ops {

/// x [N, spatial..., C] -> [N, extents..., C], the means; of 16 bits they are added up in float32.
[[nodiscard]] Tensor adaptive_average_pool(const Tensor& x, const Shape& extents);
/// The maxima. The gradient goes to the first of equal ones.
[[nodiscard]] Tensor adaptive_max_pool(const Tensor& x, const Shape& extents);

}  // namespace lockstep::ops
