// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/launch.cuh"

namespace lockstep::kernels::cuda {

/// functors/batch_norm.h's batch_norm(), rounded in the same way by every kernel: what the backward pass computes again
/// is what the forward pass has written.
__device__ inline float normalized(float x, float mean, float scale, float shift) {
  return __fmaf_rn(x - mean, scale, shift);
}

}  // namespace lockstep::kernels::cuda
