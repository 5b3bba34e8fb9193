// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Running sums and products over the middle of [outer, n, inner].
struct Scans {
  /// This family's functions of the backend for tensors on `device`.
  static const Scans& on(Device device);

  /// y_k = a_k * y_(k-1) + b_k for ascending k, or from y_(k+1) for descending ones where `reverse`. Nothing comes
  /// before the first one, which is b_k. An undefined a is 1 everywhere: a running sum. An undefined b makes the first
  /// one a_k and is 0 from there on: a running product. One of them is defined. All of one shape and floating dtype.
  void (*scan)(const Tensor& a, const Tensor& b, bool reverse, const Tensor& y);
};

}  // namespace lockstep::kernels
