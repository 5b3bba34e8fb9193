// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// Indexing::order
void order(const Tensor& x, bool descending, const Tensor& indices);

}  // namespace lockstep::kernels::cpu
