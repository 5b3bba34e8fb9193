// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

// Comparisons give bool tensors, which have no gradient. But for ne() they do not hold where either is NaN. Shapes are
// broadcast and dtypes promoted as for arithmetic (elementwise.h). Integers and bool are compared with each other and
// with numbers in float64: exactly up to 2^53. cast() those that a floating tensor is compared with.

namespace lockstep::ops {

[[nodiscard]] Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor eq(const Tensor& a, double b);
[[nodiscard]] Tensor ne(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ne(const Tensor& a, double b);
[[nodiscard]] Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor lt(const Tensor& a, double b);
[[nodiscard]] Tensor le(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor le(const Tensor& a, double b);
[[nodiscard]] Tensor gt(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor gt(const Tensor& a, double b);
[[nodiscard]] Tensor ge(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor ge(const Tensor& a, double b);

/// a where the condition (bool) holds, else b; all three broadcast. What is not chosen has no influence, NaN included,
/// and gets a gradient of 0.
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor where(const Tensor& condition, const Tensor& a, double b);
[[nodiscard]] Tensor where(const Tensor& condition, double a, const Tensor& b);

}  // namespace lockstep::ops
