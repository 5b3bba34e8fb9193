// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// x [N, spatial..., C], weight [O, kernel..., C / groups], y [N, spatial'..., O].
struct Convolution {
  /// This family's functions of the backend for tensors on `device`.
  static const Convolution& on(Device device);

  /// bias [O] may be undefined. x, weight, bias and y share a dtype.
  void (*conv_forward)(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& y);
  /// Writes those of dx, dweight, dbias that are defined. dx has x's dtype; dweight and dbias may be of any floating
  /// dtype (they may be slices of the gradient arena) and are added to when `accumulate`. x is read for dweight and
  /// weight for dx; without dweight dx may be x, which then gives the shape alone.
  void (*conv_backward)(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                        const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate);
};

}  // namespace lockstep::kernels
