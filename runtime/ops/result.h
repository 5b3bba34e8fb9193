// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// An uninitialised tensor of the same shape, dtype and device.
[[nodiscard]] inline Tensor empty_like(const Tensor& tensor) {
  return Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
}

/// Converted to any dtype, outside the graph.
[[nodiscard]] inline Tensor converted(const Tensor& tensor, DType dtype) {
  const Tensor result = Tensor::empty(tensor.shape(), dtype, tensor.device());
  kernels::backend(tensor.device()).cast(tensor, result);
  return result;
}

}  // namespace lockstep::ops
