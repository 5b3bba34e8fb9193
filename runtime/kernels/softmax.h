// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

struct Softmax {
  /// Over the last dimension.
  void (*softmax)(const Tensor& x, bool log, const Tensor& y);
  /// dx from the output y of softmax (or of log_softmax where `log`).
  void (*softmax_backward)(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx);
  /// The same over the middle of [outer, n, inner]. Tensors are different ones, or one and the same.
  void (*softmax_middle)(const Tensor& x, bool log, const Tensor& y);
  void (*softmax_middle_backward)(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
