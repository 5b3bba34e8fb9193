// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// a + b. Same shape, or b [channels] added to every row of a. Dtypes are promoted.
Tensor add(const Tensor& a, const Tensor& b);
/// a * b elementwise; shapes as in add.
Tensor mul(const Tensor& a, const Tensor& b);
/// x * factor.
Tensor scale(const Tensor& x, double factor);
/// x * *device_factor, a float32 on x's device; the pointer must outlive the backward pass. The factor is no part of
/// the graph.
Tensor scale_by(const Tensor& x, const float* device_factor);
Tensor relu(const Tensor& x);
/// x * (1 + erf(x / sqrt 2)) / 2
Tensor gelu(const Tensor& x);
/// x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: gelu's approximation, PyTorch's approximate="tanh".
Tensor gelu_tanh(const Tensor& x);

}  // namespace lockstep::ops
