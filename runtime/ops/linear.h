// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// a [M, K] b [K, N] -> [M, N]; or with equal batch extents [B, M, K] [B, K, N] -> [B, M, N].
Tensor matmul(const Tensor& a, const Tensor& b);
/// x [..., in] weight [out, in]^T + bias [out] -> [..., out]; bias may be undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace lockstep::ops
