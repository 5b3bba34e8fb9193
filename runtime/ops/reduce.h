// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/ops/dims.h"
#include "runtime/tensor/tensor.h"

// Reductions over dimensions. An empty list of them names all; without a list everything is reduced to a scalar. The
// result's shape lacks the reduced dimensions, or has them with extent 1 where `keepdim`. Sums are accumulated in
// float32 (float64 for float64) in an order that the shape alone decides, and rounded once.

namespace lockstep::ops {

/// The sum, and the mean, of all elements, as a scalar of x's dtype. The mean of nothing is 0. Sums of integers and of
/// bool, which count, are int64, and exact up to 2^53; their mean throws UsageError: cast() them.
[[nodiscard]] Tensor sum(const Tensor& x);
[[nodiscard]] Tensor mean(const Tensor& x);

struct SumOptions {
  bool keepdim = false;
  /// The dtype of the result, whatever autocast says. x is cast to it first where it is the narrower one or x's is no
  /// floating dtype.
  std::optional<DType> dtype = {};
};
[[nodiscard]] Tensor sum(const Tensor& x, const Dims& dims, const SumOptions& options = {});
/// The mean of no elements is NaN, as PyTorch's.
[[nodiscard]] Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false);

struct VarianceOptions {
  double correction = 1;  ///< the sum of squares is divided by the number of elements less this; NaN where that is <= 0
  bool keepdim = false;
};
/// The variance around the mean, in two passes.
[[nodiscard]] Tensor var(const Tensor& x, const Dims& dims, const VarianceOptions& options = {});
/// The standard deviation, the root of var(). Its gradient is 0 where it is 0.
[[nodiscard]] Tensor std(const Tensor& x, const Dims& dims, const VarianceOptions& options = {});

/// The extreme elements along a dimension and where each lies first, int64. A NaN is more extreme than any number. The
/// gradient goes to that element. Throws ShapeError where there are no elements.
struct Extremes {
  Tensor values;
  Tensor indices;
};
[[nodiscard]] Extremes max(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] Extremes min(const Tensor& x, int dim, bool keepdim = false);
/// The extreme elements alone. Equal ones share the gradient evenly.
[[nodiscard]] Tensor amax(const Tensor& x, const Dims& dims, bool keepdim = false);
[[nodiscard]] Tensor amin(const Tensor& x, const Dims& dims, bool keepdim = false);
[[nodiscard]] Tensor max(const Tensor& x);
[[nodiscard]] Tensor min(const Tensor& x);
/// Where the extreme element lies first along a dimension; without one, in x as a line. int64, without a gradient.
[[nodiscard]] Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] Tensor argmin(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] Tensor argmax(const Tensor& x);
[[nodiscard]] Tensor argmin(const Tensor& x);

}  // namespace lockstep::ops
