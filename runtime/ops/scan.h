// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/tensor/tensor.h"

// Running sums and products along a dimension, accumulated in float64 and rounded once. A named dtype is the result's,
// whatever autocast says; x is cast to it first. Results of integers and of bool are int64 where none is named, and
// exact up to 2^53. Gradients are right where factors are 0, too.

namespace lockstep::ops {

[[nodiscard]] Tensor cumsum(const Tensor& x, int dim, std::optional<DType> dtype = {});
[[nodiscard]] Tensor cumprod(const Tensor& x, int dim, std::optional<DType> dtype = {});

struct ProductOptions {
  bool keepdim = false;
  std::optional<DType> dtype = {};
};
/// The product of the elements along a dimension; 1 where there are none.
[[nodiscard]] Tensor prod(const Tensor& x, int dim, const ProductOptions& options = {});
/// The product of all elements.
[[nodiscard]] Tensor prod(const Tensor& x, std::optional<DType> dtype = {});

/// y_k = a_k * y_(k-1) + b_k along a dimension, with y_(-1) = 0; from the last one on where `reverse`. a and b have one
/// shape and dtype. The gradient of a running product is a recurrence, and so is the gradient of a recurrence.
[[nodiscard]] Tensor recurrence(const Tensor& a, const Tensor& b, int dim, bool reverse = false);

}  // namespace lockstep::ops
