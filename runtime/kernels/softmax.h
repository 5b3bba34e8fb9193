// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

struct Softmax {
  /// This family's functions of the backend for tensors on `device`.
  static const Softmax& on(Device device);

  /// Softmax over the last dimension, or its logarithm where `log`.
  void (*softmax)(const Tensor& x, bool log, const Tensor& y);
  /// dx from the output y of softmax (or of log_softmax where `log`).
  void (*softmax_backward)(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx);
  /// Softmax over the middle of [outer, n, inner]. Tensors of a call may be one and the same, else they do not overlap.
  void (*softmax_middle)(const Tensor& x, bool log, const Tensor& y);
  void (*softmax_middle_backward)(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
