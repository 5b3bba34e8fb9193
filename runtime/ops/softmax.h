// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Over the last dimension.
Tensor softmax(const Tensor& x);
Tensor log_softmax(const Tensor& x);
/// The gradient of softmax, y (dy - sum of y dy), of its output y, made of operations.
Tensor softmax_gradient(const Tensor& y, const Tensor& dy);

}  // namespace lockstep::ops
