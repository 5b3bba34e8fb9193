// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/channel_tiles.cuh"
#include "runtime/kernels/functors/moments.h"

namespace lockstep::kernels::cuda {

/// Rows that a thread loads before it uses the first.
constexpr int kStatisticsBatch = 4;

/// partials [grid.z, chunks, 2, channels]: mean and m2 of each chunk's rows, of as many tensors behind each other as
/// grid.z says. Reads each element once: 2 bytes of 16-bit types, 4 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kThreads, kReductionBlocksOnEach)
    statistics_of_chunks(const T* x, std::int64_t channels, Chunks chunks, float* partials) {
  __shared__ Moments<float> shared[W][kThreads];
  __shared__ float shared_counts[kThreads];
  x += blockIdx.z * chunks.rows * channels;
  partials += blockIdx.z * chunks.count * 2 * channels;
  const std::int64_t channel = first_channel<W>();
  const std::int64_t end = chunks.end(blockIdx.y);
  const std::int64_t lines = blockDim.y;
  std::int64_t row = chunks.begin(blockIdx.y) + threadIdx.y;
  Moments<float> moments[W];
  float count = 0;
  if (channel < channels) {
    x += channel;
    for (; row + (kStatisticsBatch - 1) * lines < end; row += kStatisticsBatch * lines) {
      Values<T, W> batch[kStatisticsBatch];
#pragma unroll
      for (int b = 0; b < kStatisticsBatch; ++b) batch[b] = load<W>(x + (row + b * lines) * channels);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        float values[kStatisticsBatch];
#pragma unroll
        for (int b = 0; b < kStatisticsBatch; ++b) values[b] = to_float(batch[b].values[w]);
        moments[w].add(count, moments_of(values), kStatisticsBatch);
      }
      count += kStatisticsBatch;
    }
    for (; row < end; row += lines) {
      const Values<T, W> last = load<W>(x + row * channels);
#pragma unroll
      for (int w = 0; w < W; ++w) moments[w].add(count, {to_float(last.values[w]), 0.0f}, 1.0f);
      count += 1;
    }
  }
  const unsigned self = thread_in_block();
  const auto leave = [&] {
#pragma unroll
    for (int w = 0; w < W; ++w) shared[w][self] = moments[w];
    shared_counts[self] = count;
  };
  fold_lines(leave, [&](unsigned other) {
#pragma unroll
    for (int w = 0; w < W; ++w) moments[w].add(count, shared[w][other], shared_counts[other]);
    count += shared_counts[other];
  });
  if (threadIdx.y != 0 || channel >= channels) return;
  float* const means = partials + blockIdx.y * 2 * channels + channel;
#pragma unroll
  for (int w = 0; w < W; ++w) {
    means[w] = moments[w].mean;
    means[channels + w] = moments[w].m2;
  }
}

}  // namespace lockstep::kernels::cuda
