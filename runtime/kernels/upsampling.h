// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// x [N, spatial..., C], y [N, spatial'..., C] of the same floating dtype.
struct Upsampling {
  /// This family's functions of the backend for tensors on `device`.
  static const Upsampling& on(Device device);

  /// y = the nearest pixel of x, or the one between its two neighbours along each dimension, functors/upsampling.h.
  void (*upsample)(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y);
  /// dx = the sum of dy over the pixels that were made of one, times its weight in them; in a fixed order.
  void (*upsample_backward)(const UpsampleGeometry& geometry, const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
