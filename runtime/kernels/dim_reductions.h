// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/reduction_kinds.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Reductions over some dimensions, which the caller has brought together: x [outer, n, inner] is reduced over its
/// middle to [outer, inner]. Floating dtypes. The order of additions depends on the shape alone.
struct DimReductions {
  /// This family's functions of the backend for tensors on `device`.
  static const DimReductions& on(Device device);

  /// out = factor * sum over k of term(x_k); of any floating dtype.
  void (*sum_dim)(const Tensor& x, Term term, double factor, const Tensor& out);
  /// variance = sum over k of (x_k - mean)^2 / divisor, in two passes; NaN where the divisor is 0. Of any floating
  /// dtype.
  void (*variance_dim)(const Tensor& x, double divisor, const Tensor& variance);
  /// The largest or smallest element and where it lies first; n >= 1. A NaN counts as more extreme than any number.
  /// values of x's dtype, indices int64; either may be undefined.
  void (*extreme_dim)(const Tensor& x, Extreme which, const Tensor& values, const Tensor& indices);
  /// shares [outer, n, inner] = 1 / count where x equals extremes [outer, inner], of which there are `count`, and 0
  /// elsewhere; x's dtype. Two NaNs count as equal.
  void (*extreme_shares)(const Tensor& x, const Tensor& extremes, const Tensor& shares);
};

}  // namespace lockstep::kernels
