// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// a [M, K] b [K, N] -> [M, N]; or with equal batch extents [B, M, K] [B, K, N] -> [B, M, N].
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);
/// matmul(op(a), op(b)), op transposing the last two dimensions where asked for.
[[nodiscard]] Tensor matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b);
/// activation(x [..., in] weight [out, in]^T + bias [out]) -> [..., out], one operation; bias may be undefined.
///
/// Its backward takes the gradient of the bias with that of the weight, and multiplies the gradient of x by the
/// derivative of the activation that made x where nothing else depends on x.
[[nodiscard]] Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            Activation activation = Activation::kNone);

}  // namespace lockstep::ops
