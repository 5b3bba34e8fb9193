// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

// Distances of vectors: vector_norm(a - b, order), computed in float32 where they have 16 bits. The gradient is 0 where
// the distance is.

namespace lockstep::ops {

/// The distance of two tensors, all elements of which are one vector: a scalar. They are broadcast.
[[nodiscard]] Tensor dist(const Tensor& a, const Tensor& b, double order = 2);

/// a [..., n, d], b [..., m, d] -> [..., n, m]: the distance of each row of a to each row of b. The dimensions before
/// are broadcast. Keeps the n m d differences for the backward pass. Throws UsageError for an order below 0.
[[nodiscard]] Tensor cdist(const Tensor& a, const Tensor& b, double order = 2);

/// x [n, d] -> [n (n - 1) / 2]: the distance of row i to row j for all i < j, in the order of (i, j). Throws as
/// cdist().
[[nodiscard]] Tensor pdist(const Tensor& x, double order = 2);

}  // namespace lockstep::ops
