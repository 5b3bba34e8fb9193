// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// out = op(a) op(b) (+ bias, + out when `add`) in float32 by the loops (products.h), for where oneDNN has only plain
/// ones. Of rank 2 or 3, the first dimension counting matrices; bias may be undefined.
void matmul_by_loops(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Tensor& bias, bool add,
                     const Tensor& out);

}  // namespace lockstep::kernels::cpu
