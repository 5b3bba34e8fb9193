// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/kernels/cuda/conv_problem.h"

namespace lockstep::kernels::cuda {

/// The pass by its definition, for what cuDNN has no engine: any extents, float32 accumulation in a fixed order, slow.
/// The weights' gradient is float32; otherwise the result has the operands' dtype. Throws ShapeError for other dtypes
/// than float32, float16 and bfloat16.
void conv_direct(const ConvProblem& problem, const ConvData& data, cudaStream_t stream);

}  // namespace lockstep::kernels::cuda
