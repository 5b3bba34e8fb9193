// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// An uninitialised tensor of the same shape, dtype and device.
[[nodiscard]] inline Tensor empty_like(const Tensor& tensor) {
  return Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
}

/// A copy in another dtype, outside the graph.
[[nodiscard]] Tensor converted(const Tensor& tensor, DType dtype);

}  // namespace lockstep::ops
