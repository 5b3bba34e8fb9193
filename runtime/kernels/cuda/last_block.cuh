// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "runtime/kernels/cuda/launch.cuh"

// A reduction in one kernel: every block leaves what it found in global memory, and the last one to do so reads all of
// it, in the order of the blocks. Which block that is changes nothing of the result.

namespace lockstep::kernels::cuda {

/// Counters of blocks that have left something, one a launch; 0 before it and after it.
constexpr unsigned kTickets = 1 << 13;
static __device__ unsigned tickets[2 * kTickets];

/// The counter of the next launch on the stream, as a number. Launches that may run at the same time have counters of
/// their own: those of a graph, which are launched again and again, and those of its kind that are queued on all
/// streams, of which there are far fewer than counters.
inline unsigned next_ticket(cudaStream_t stream) {
  static std::atomic<unsigned> launched{0}, captured{0};
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  gpu::check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  const bool of_graph = status != cudaStreamCaptureStatusNone;
  const unsigned number = (of_graph ? captured : launched).fetch_add(1, std::memory_order_relaxed) % kTickets;
  return of_graph ? kTickets + number : number;
}

/// Whether this is the last block of a grid to come here; the same for all its threads. What thread 0 of each block
/// wrote before is then there to read with __ldcg().
__device__ inline bool is_last_block(unsigned ticket) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    // Counts up, and back to 0 with the last block: the ticket is ready for another launch.
    last = atomicInc(&tickets[ticket], gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

}  // namespace lockstep::kernels::cuda
