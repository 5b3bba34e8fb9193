// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/values.cuh"

// Threads over [rows, channels]: blockDim.x lanes along the channels and blockDim.y lines along the rows. A thread
// keeps its channels, W neighbours, for all its rows, so that a channel's values stay in registers and no element's
// place has to be divided out. The shape of a grid follows from the shape of the tensor, and with occupancy.h from the
// GPU, and from nothing else; so does the order of every sum.

namespace lockstep::kernels::cuda {

/// Blocks of a reduction where nobody asks occupancy.h: most run at once, and what they leave to add is little.
constexpr std::int64_t kReductionBlocks = 132 * 4;

/// Blocks of a reduction's first stage that fit on a multiprocessor: at most 64 registers a thread. What hides the
/// latency of memory is the number of loads under way, which more registers for fewer threads would not raise.
constexpr int kReductionBlocksOnEach = 4;

struct Tiling {
  dim3 threads;    ///< of a block
  unsigned tiles;  ///< blocks side by side along the channels: grid.x

  std::int64_t lines() const { return threads.y; }
  int block() const { return static_cast<int>(threads.x * threads.y); }
};

/// The tiling of at least one channel. Up to 32 lanes read 512 contiguous bytes; fewer channels than that are one tile,
/// whose rows are contiguous.
template <int W>
Tiling tile(std::int64_t channels) {
  const std::int64_t packs = (channels + W - 1) / W;
  const std::int64_t tiles = (packs + 31) / 32;
  const auto lanes = static_cast<unsigned>((packs + tiles - 1) / tiles);
  return {dim3(lanes, kThreads / lanes), static_cast<unsigned>(tiles)};
}

/// The grid of a kernel that loops over the rows, each thread over `batch` of them at a time; of up to `blocks`.
inline dim3 grid_over_rows(const Tiling& tiling, std::int64_t rows, int batch, std::int64_t blocks = kMaxBlocks) {
  const std::int64_t at_once = tiling.lines() * batch;
  const std::int64_t most = std::max<std::int64_t>(blocks / tiling.tiles, 1);
  return {tiling.tiles, static_cast<unsigned>(std::clamp<std::int64_t>((rows + at_once - 1) / at_once, 1, most))};
}

/// The rows in equal chunks, one a block; the last one may be shorter.
struct Chunks {
  std::int64_t rows;
  std::int64_t chunk_rows;
  std::int64_t count;

  __host__ __device__ std::int64_t begin(std::int64_t chunk) const { return chunk * chunk_rows; }
  __host__ __device__ std::int64_t end(std::int64_t chunk) const {
    const std::int64_t end = (chunk + 1) * chunk_rows;
    return end < rows ? end : rows;
  }
};

/// Cuts the rows into at least one chunk, each of at least 8 rows a thread where there are so many, for a grid of up to
/// `blocks`.
inline Chunks cut(const Tiling& tiling, std::int64_t rows, std::int64_t blocks = kReductionBlocks) {
  const std::int64_t fewest = 8 * tiling.lines();
  const std::int64_t most = std::max<std::int64_t>(blocks / tiling.tiles, 1);
  const std::int64_t wanted = std::clamp<std::int64_t>((rows + fewest - 1) / fewest, 1, most);
  const std::int64_t chunk_rows = std::max<std::int64_t>((rows + wanted - 1) / wanted, 1);
  return {rows, chunk_rows, std::max<std::int64_t>((rows + chunk_rows - 1) / chunk_rows, 1)};
}

/// The thread's first channel, and its number in the block.
template <int W>
__device__ std::int64_t first_channel() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W;
}
__device__ inline unsigned thread_in_block() { return threadIdx.y * blockDim.x + threadIdx.x; }

/// Folds what the lines of a block hold into line 0, halves at a time. store() leaves what this thread holds at its
/// number in shared memory; add(number) joins what that thread has left there. All threads of the block.
template <class Store, class Add>
__device__ void fold_lines(Store store, Add add) {
  for (unsigned n = blockDim.y; n > 1;) {
    const unsigned half = (n + 1) / 2;
    if (threadIdx.y >= half && threadIdx.y < n) store();
    __syncthreads();
    if (threadIdx.y + half < n) add(thread_in_block() + half * blockDim.x);
    __syncthreads();
    n = half;
  }
}

// The second stage of a reduction folds the partial results of the chunks, 32 threads a channel.

constexpr int kFoldLanes = 32;
constexpr int kFoldLines = 32;

inline unsigned fold_blocks(std::int64_t channels) {
  return static_cast<unsigned>((channels + kFoldLanes - 1) / kFoldLanes);
}

/// The sum over the lines of a block of kFoldLanes by kFoldLines, which every line gets. All threads of the block.
__device__ inline double sum_lines(double value) {
  __shared__ double values[kFoldLines][kFoldLanes];
  values[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (int line = 0; line < kFoldLines; ++line) sum += values[line][threadIdx.x];
  __syncthreads();
  return sum;
}

}  // namespace lockstep::kernels::cuda
