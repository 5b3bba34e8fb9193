// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cuda/channel_tiles.cuh"

// The gradients of a normalisation's parameters, in two stages: blocks add up chunks of rows, and a second kernel adds
// up what they left, in its order.

namespace lockstep::kernels::cuda {

/// Calls f.template operator()<Y>() with the element type of a normalisation's result, which is that of its input T or
/// float.
template <class T, class F>
void visit_result(const Tensor& y, F&& f) {
  if (y.dtype() == DType::kFloat32) return f.template operator()<float>();
  return f.template operator()<T>();
}

/// The statistics of an element: of its row, or of its sample (blockIdx.z) and its channel's group.
struct RowStatistics {
  const float* mean;  ///< null: nothing is subtracted
  const float* inv_std;

  __device__ float center(std::int64_t row, std::int64_t) const { return mean != nullptr ? mean[row] : 0.0f; }
  __device__ float scale(std::int64_t row, std::int64_t) const { return inv_std[row]; }
};

struct GroupStatistics {
  const float* mean;
  const float* inv_std;
  std::int64_t groups;
  std::int64_t width;  ///< channels of a group

  __device__ std::int64_t group(std::int64_t channel) const { return blockIdx.z * groups + channel / width; }
  __device__ float center(std::int64_t, std::int64_t channel) const { return mean[group(channel)]; }
  __device__ float scale(std::int64_t, std::int64_t channel) const { return inv_std[group(channel)]; }
};

/// partials [grid.z, chunks, 2, channels]: the sums over each chunk's rows of dy and of dy (x - mean) inv_std, of as
/// many tensors behind each other as grid.z says. Reads 4 bytes an element of 16-bit types and 8 of float32.
template <class T, class Y, int W, class Statistics>
__global__ void __launch_bounds__(kThreads)
    gradient_sums_of_chunks(const T* x, const Y* dy, Statistics statistics, std::int64_t channels, Chunks chunks,
                            float* partials) {
  __shared__ float shared_sums[W][kThreads];
  __shared__ float shared_products[W][kThreads];
  x += blockIdx.z * chunks.rows * channels;
  dy += blockIdx.z * chunks.rows * channels;
  partials += blockIdx.z * chunks.count * 2 * channels;
  const std::int64_t channel = first_channel<W>();
  const std::int64_t end = chunks.end(blockIdx.y);
  float sums[W] = {};
  float products[W] = {};
  if (channel < channels) {
#pragma unroll 2
    for (std::int64_t row = chunks.begin(blockIdx.y) + threadIdx.y; row < end; row += blockDim.y) {
      const Values<T, W> xs = load<W>(x + row * channels + channel);
      const Values<Y, W> dys = load<W>(dy + row * channels + channel);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float slope = to_float(dys.values[w]);
        const float distance = to_float(xs.values[w]) - statistics.center(row, channel + w);
        sums[w] += slope;
        products[w] += slope * (distance * statistics.scale(row, channel + w));
      }
    }
  }
  const unsigned self = thread_in_block();
  const auto leave = [&] {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      shared_sums[w][self] = sums[w];
      shared_products[w][self] = products[w];
    }
  };
  fold_lines(leave, [&](unsigned other) {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      sums[w] += shared_sums[w][other];
      products[w] += shared_products[w][other];
    }
  });
  if (threadIdx.y != 0 || channel >= channels) return;
  float* const partial = partials + blockIdx.y * 2 * channels + channel;
#pragma unroll
  for (int w = 0; w < W; ++w) {
    partial[w] = sums[w];
    partial[channels + w] = products[w];
  }
}

/// The sums of a channel's partials: of dy, and of dy's products.
struct PartialSums {
  double sum = 0;
  double product = 0;
};

/// The sums of `count` partials of a channel, which every line gets; 0 where the channel is not live. Called by all
/// threads of a block of kFoldLanes x kFoldLines.
__device__ inline PartialSums fold_partials(const float* partials, std::int64_t channels, std::int64_t count,
                                            std::int64_t channel, bool live) {
  PartialSums sums;
  for (std::int64_t i = threadIdx.y; live && i < count; i += kFoldLines) {
    const float* const partial = partials + i * 2 * channels + channel;
    sums.sum += static_cast<double>(partial[0]);
    sums.product += static_cast<double>(partial[channels]);
  }
  return {sum_lines(sums.sum), sum_lines(sums.product)};
}

/// Writes the sums of each channel's `count` partials. Either result may be null. A template, as kernels in headers
/// are.
template <class Out>
__global__ void __launch_bounds__(kFoldLanes* kFoldLines)
    fold_gradient_sums(const float* partials, std::int64_t channels, std::int64_t count, Out* dweight, Out* dbias) {
  const std::int64_t channel = first_channel<1>();
  const bool live = channel < channels;
  const auto [sum, product] = fold_partials(partials, channels, count, channel, live);
  if (threadIdx.y != 0 || !live) return;
  if (dbias != nullptr) dbias[channel] = static_cast<Out>(sum);
  if (dweight != nullptr) dweight[channel] = static_cast<Out>(product);
}

inline void launch_fold_gradient_sums(const Tensor& partials, std::int64_t channels, const Tensor& dweight,
                                      const Tensor& dbias, cudaStream_t stream) {
  fold_gradient_sums<float><<<fold_blocks(channels), dim3(kFoldLanes, kFoldLines), 0, stream>>>(
      in<float>(partials), channels, partials.numel() / (2 * channels),
      dweight.defined() ? out<float>(dweight) : nullptr, dbias.defined() ? out<float>(dbias) : nullptr);
  check_launch("the sums of a normalisation's backward");
}

/// Elements of a vector of parameters, or `otherwise` where there is none.
template <int W>
__device__ Values<float, W> parameters_at(const float* parameters, std::int64_t channel, float otherwise) {
  if (parameters != nullptr) return load<W>(parameters + channel);
  Values<float, W> constant;
#pragma unroll
  for (int w = 0; w < W; ++w) constant.values[w] = otherwise;
  return constant;
}

inline const float* pointer_of(const Tensor& tensor) { return tensor.defined() ? in<float>(tensor) : nullptr; }

}  // namespace lockstep::kernels::cuda
