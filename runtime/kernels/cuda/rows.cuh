// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "runtime/kernels/cuda/values.cuh"

// Threads over rows that are reduced one by one: a team works on a row, and all of it gets the results, by sums in an
// order that is always the same. Teams whose row lies past the last one take part without elements.

namespace lockstep::kernels::cuda {

/// Rows up to here are one warp's, or the work of a part of it.
constexpr std::int64_t kWarpRow = 1024;

struct RowGrid {
  unsigned blocks;
  unsigned threads;
  unsigned team;  ///< threads a row: a power of two up to 32, or the whole block

  bool of_warps(std::int64_t channels) const { return channels <= kWarpRow; }
};

/// Rows of `channels`, of which a thread takes W neighbours at a time; blocks of `threads` where a block takes a row.
template <int W>
RowGrid grid_of_rows(std::int64_t rows, std::int64_t channels, unsigned threads) {
  if (channels > kWarpRow) return {blocks_for(rows, 1), threads, threads};
  const auto packs = static_cast<unsigned>((channels + W - 1) / W);
  const unsigned team = std::min(std::bit_ceil(std::max(packs, 1u)), 32u);
  return {blocks_for(rows, kThreads / static_cast<int>(team)), kThreads, team};
}

/// `size` neighbouring lanes of a warp. Whole warps must call its functions.
struct Lanes {
  unsigned size;

  __device__ unsigned rank() const { return threadIdx.x % size; }
  __device__ float max(float value) const {
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      value = fmaxf(value, __shfl_xor_sync(~0u, value, static_cast<int>(distance)));
    }
    return value;
  }
  __device__ float sum(float value) const {
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(~0u, value, static_cast<int>(distance));
    }
    return value;
  }
};

/// A block, of whole warps. All its threads must call its functions.
struct WholeBlock {
  unsigned size;

  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ float max(float value) const {
    return agree(Lanes{32}.max(value), [](float a, float b) { return fmaxf(a, b); });
  }
  __device__ float sum(float value) const {
    return agree(Lanes{32}.sum(value), [](float a, float b) { return a + b; });
  }

 private:
  template <class Join>
  __device__ float agree(float of_warp, Join join) const {
    __shared__ float shared[32];
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = of_warp;
    __syncthreads();
    float all = shared[0];
    for (unsigned warp = 1; warp < size / 32; ++warp) all = join(all, shared[warp]);
    __syncthreads();  // before the next call writes
    return all;
  }
};

/// Calls visit(row, whether there is such a row) on the team's rows; all teams of a block as often.
template <class Team, class Visit>
__device__ void for_each_row(Team team, std::int64_t rows, Visit visit) {
  const std::int64_t at_once = blockDim.x / team.size;
  for (std::int64_t begin = blockIdx.x * at_once; begin < rows; begin += gridDim.x * at_once) {
    const std::int64_t row = begin + threadIdx.x / team.size;
    visit(row, row < rows);
  }
}

/// Elements of a row that a thread holds in registers, and the largest blocks that do so: rows up to their product are
/// read once.
constexpr int kHeld = 32;
constexpr unsigned kHoldingThreads = 512;
/// Longer rows are read twice. Two such blocks on a multiprocessor leave the second reading mostly to the L2 cache.
constexpr unsigned kStreamingThreads = 1024;

/// Threads that hold a row of more than kWarpRow: four accesses each where the row is short, and all of kHeld in the
/// end. 0: the row is too long.
template <int W>
unsigned holding_threads(std::int64_t channels) {
  if (channels > static_cast<std::int64_t>(kHeld) * kHoldingThreads) return 0;
  const std::int64_t wanted = std::max<std::int64_t>((channels + 4 * W - 1) / (4 * W), 32);
  return std::min(std::bit_ceil(static_cast<unsigned>(wanted)), kHoldingThreads);
}

/// Calls launch(grid, team) for a kernel that holds rows, or launch_streamed(grid, team).
template <int W, class Launch, class LaunchStreamed>
void choose_row_kernel(std::int64_t rows, std::int64_t channels, Launch launch, LaunchStreamed launch_streamed) {
  const unsigned threads = holding_threads<W>(channels);
  const RowGrid grid = grid_of_rows<W>(rows, channels, threads > 0 ? threads : kStreamingThreads);
  if (grid.of_warps(channels)) {
    launch(grid, Lanes{grid.team});
  } else if (threads > 0) {
    launch(grid, WholeBlock{grid.team});
  } else {
    launch_streamed(grid, WholeBlock{grid.team});
  }
}

}  // namespace lockstep::kernels::cuda
