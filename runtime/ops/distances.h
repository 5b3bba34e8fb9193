// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

// Distances of vectors: vector_norm(a - b, order), computed in float32 where they have 16 bits. The gradient of order 2
// is 0 where the distance is.

namespace lockstep::ops {

/// Of all elements, a scalar; broadcast.
[[nodiscard]] Tensor dist(const Tensor& a, const Tensor& b, double order = 2);

/// Of each row of a, [..., n, d], and each of b, [..., m, d]: [..., n, m]. The dimensions before are broadcast. Keeps
/// the n m d differences for the backward pass. Throws UsageError for an order below 0.
[[nodiscard]] Tensor cdist(const Tensor& a, const Tensor& b, double order = 2);

/// Of the n (n - 1) / 2 pairs of rows i < j of x, [n, d], in the order of (i, j). Throws as cdist().
[[nodiscard]] Tensor pdist(const Tensor& x, double order = 2);

}  // namespace lockstep::ops
