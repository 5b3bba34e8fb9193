// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Sums, in an order that the shape alone decides.
struct Reductions {
  /// This family's functions of the backend for tensors on `device`.
  static const Reductions& on(Device device);

  /// out (scalar, rank 0) = sum of x * factor. Deterministic order.
  void (*sum)(const Tensor& x, double factor, const Tensor& out);
  /// out [channels] = sum of x over its rows; when `accumulate`, added to out.
  void (*sum_rows)(const Tensor& x, bool accumulate, const Tensor& out);
};

}  // namespace lockstep::kernels
