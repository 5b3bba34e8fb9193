// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// x [N, spatial..., C].
struct Pooling {
  /// This family's functions of the backend for tensors on `device`.
  static const Pooling& on(Device device);

  /// `indices` (int32, y's shape) receives for max pooling each maximum's offset in its image's spatial extents (the
  /// first one on ties; NaN wins); undefined for average pooling.
  void (*pool_forward)(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices);
  void (*pool_backward)(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx);
  /// y [N, C] = mean of x over its spatial dimensions.
  void (*global_average_pool)(const Tensor& x, const Tensor& y);
  void (*global_average_pool_backward)(const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
