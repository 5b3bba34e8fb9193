// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/launch.cuh"

namespace lockstep::kernels::cuda {

/// The sum over a block of kThreads threads, given to its first thread; in an order that is always the same. A barrier
/// for the whole block, and another one between two calls.
__device__ inline double block_sum(double value) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ double of_warp[kWarps];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double part : of_warp) sum += part;
  }
  return sum;
}

}  // namespace lockstep::kernels::cuda
