// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// Whether the loops and the primitives take this dtype; everything else runs on the reference backend.
inline bool is_fast(DType dtype) { return dtype == DType::kFloat32 || is_reduced(dtype); }
inline bool is_fast(const Tensor& tensor) { return is_fast(tensor.dtype()); }

}  // namespace lockstep::kernels::cpu
