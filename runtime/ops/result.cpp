// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/result.h"

#include "runtime/kernels/assign.h"

namespace lockstep::ops {

Tensor converted(const Tensor& tensor, DType dtype) {
  const Tensor result = Tensor::empty(tensor.shape(), dtype, tensor.device());
  kernels::cast(tensor, result);
  return result;
}

}  // namespace lockstep::ops
