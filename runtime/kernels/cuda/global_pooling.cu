// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/channel_tiles.cuh"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// A block an image and tile of channels. Reads each element once: 2 bytes of 16-bit types, 4 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    forward(const T* x, T* y, std::int64_t images, std::int64_t pixels, std::int64_t channels) {
  __shared__ float shared[W][kThreads];
  const std::int64_t channel = first_channel<W>();
  const unsigned self = thread_in_block();
  for (std::int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    float sums[W] = {};
    if (channel < channels) {
#pragma unroll 4
      for (std::int64_t pixel = threadIdx.y; pixel < pixels; pixel += blockDim.y) {
        const Values<T, W> values = load<W>(x + (image * pixels + pixel) * channels + channel);
#pragma unroll
        for (int w = 0; w < W; ++w) sums[w] += to_float(values.values[w]);
      }
    }
    const auto leave = [&] {
#pragma unroll
      for (int w = 0; w < W; ++w) shared[w][self] = sums[w];
    };
    fold_lines(leave, [&](unsigned other) {
#pragma unroll
      for (int w = 0; w < W; ++w) sums[w] += shared[w][other];
    });
    if (threadIdx.y != 0 || channel >= channels) continue;
    Values<T, W> means;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      // Images without pixels have the mean 0.
      means.values[w] = from_float<T>(pixels > 0 ? sums[w] / static_cast<float>(pixels) : 0.0f);
    }
    store(means, y + image * channels + channel);
  }
}

/// Writes each element once: 2 bytes of 16-bit types, 4 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    backward(const T* dy, T* dx, std::int64_t rows, std::int64_t pixels, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  const float factor = 1.0f / static_cast<float>(pixels);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += stride) {
    const auto image = static_cast<std::int64_t>(static_cast<std::uint64_t>(row) / static_cast<std::uint64_t>(pixels));
    Values<T, W> values = load<W>(dy + image * channels + channel);
#pragma unroll
    for (int w = 0; w < W; ++w) values.values[w] = from_float<T>(factor * to_float(values.values[w]));
    store(values, dx + row * channels + channel);
  }
}

/// The number of pixels of one image of [N, spatial..., C].
std::int64_t pixels_of(const Shape& x) {
  std::int64_t pixels = 1;
  for (int d = 1; d + 1 < x.rank(); ++d) pixels *= x[d];
  return pixels;
}

}  // namespace

void global_average_pool(const Tensor& x, const Tensor& y) {
  checks::global_average_pool(x, y);
  if (y.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t images = x.shape().front();
  const std::int64_t channels = x.shape().back();
  visit_channels(
      "global_average_pool", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const auto high = static_cast<unsigned>(std::min<std::int64_t>(images, 65535));
        forward<T, W><<<dim3(tiling.tiles, high), tiling.threads, 0, gpu::current(device)>>>(
            in<T>(x), out<T>(y), images, pixels_of(x.shape()), channels);
        check_launch("global_average_pool");
      },
      x.data(), y.data());
}

void global_average_pool_backward(const Tensor& dy, const Tensor& dx) {
  checks::global_average_pool(dx, dy);
  if (dx.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t rows = dx.shape().rows();
  const std::int64_t channels = dx.shape().back();
  visit_channels(
      "global_average_pool_backward", dx.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        backward<T, W><<<grid_over_rows(tiling, rows, 1), tiling.threads, 0, gpu::current(device)>>>(
            in<T>(dy), out<T>(dx), rows, pixels_of(dx.shape()), channels);
        check_launch("global_average_pool_backward");
      },
      dy.data(), dx.data());
}

}  // namespace lockstep::kernels::cuda
