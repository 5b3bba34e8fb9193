// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

/// Over the last dimension.
struct Softmax {
  void (*softmax)(const Tensor& x, bool log, const Tensor& y);
  /// dx from the output y of softmax (or of log_softmax where `log`).
  void (*softmax_backward)(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
