// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/unary.h"
#include "runtime/tensor/tensor.h"

// Arithmetic of tensors. Shapes are broadcast by NumPy's rules: from the last dimension on, extents are equal, or one
// of them is 1 or missing; otherwise ShapeError. The gradient of an operand that was broadcast is the sum over its
// copies, in a fixed order. Dtypes are promoted to the wider one, a scalar's too. A number takes the tensor's dtype.
//
// add, sub, mul, maximum and minimum of integers give integers of the wider dtype, and of an integer tensor and a whole
// number its dtype (of bool: int64); they are exact up to 2^53, and what lies outside the dtype becomes its nearest
// end. div gives float32. cast() integers that a floating tensor is combined with.

namespace lockstep::ops {

[[nodiscard]] Tensor add(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor add(const Tensor& a, double b);
[[nodiscard]] Tensor sub(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor sub(const Tensor& a, double b);
[[nodiscard]] Tensor sub(double a, const Tensor& b);
[[nodiscard]] Tensor mul(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor mul(const Tensor& a, double b);
[[nodiscard]] Tensor div(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor div(const Tensor& a, double b);
[[nodiscard]] Tensor div(double a, const Tensor& b);
/// a^b; NaN where a < 0 and b is no integer.
[[nodiscard]] Tensor pow(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor pow(const Tensor& a, double b);
[[nodiscard]] Tensor pow(double a, const Tensor& b);

/// The angle of the point (x, y) to the positive x axis, in [-pi, pi]. At (0, 0) the gradients are 0, as PyTorch's.
[[nodiscard]] Tensor atan2(const Tensor& y, const Tensor& x);

/// The larger and the smaller of two elements; NaN where either is NaN. Equal ones share the gradient evenly.
[[nodiscard]] Tensor maximum(const Tensor& a, const Tensor& b);
[[nodiscard]] Tensor minimum(const Tensor& a, const Tensor& b);
/// min(max(x, low), high), each of which may be undefined.
[[nodiscard]] Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high);

/// x where x > 0, else weight * x. weight is one number, or one a channel: [channels].
[[nodiscard]] Tensor prelu(const Tensor& x, const Tensor& weight);

/// a + weight (b - a)
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
[[nodiscard]] Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// a + value * b * c and a + value * b / c, rounded once.
[[nodiscard]] Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c, double value = 1);
[[nodiscard]] Tensor addcdiv(const Tensor& a, const Tensor& b, const Tensor& c, double value = 1);

/// x * factor.
[[nodiscard]] Tensor scale(const Tensor& x, double factor);
/// x * *device_factor, a float32 on x's device; the pointer must outlive the backward pass. The factor is no part of
/// the graph.
[[nodiscard]] Tensor scale_by(const Tensor& x, const float* device_factor);

}  // namespace lockstep::ops
