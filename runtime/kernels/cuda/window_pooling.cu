// SPDX-License-Identifier: Apache-2.0
// Both directions gather: a thread writes W channels of one pixel, so no two threads write the same place and sums have
// one order. Neighbouring windows find in the caches what they share; beside that, each element is moved once:
// sizeof(T) of x and y each, and 4 bytes of indices.
#include "runtime/kernels/cuda/channel_tiles.cuh"
#include "runtime/kernels/functors/pool_window.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// A pixel of [images, extents...] by its number.
struct Pixel {
  std::int64_t image, d, h, w;

  __device__ Pixel(std::int64_t number, std::int64_t depth, std::int64_t height, std::int64_t width) {
    // Unsigned 64-bit division is quick where both numbers fit 32 bits.
    auto rest = static_cast<std::uint64_t>(number);
    w = static_cast<std::int64_t>(rest % static_cast<std::uint64_t>(width));
    rest /= static_cast<std::uint64_t>(width);
    h = static_cast<std::int64_t>(rest % static_cast<std::uint64_t>(height));
    rest /= static_cast<std::uint64_t>(height);
    d = static_cast<std::int64_t>(rest % static_cast<std::uint64_t>(depth));
    image = static_cast<std::int64_t>(rest / static_cast<std::uint64_t>(depth));
  }
};

__device__ inline Pixel in_pixel(const PoolWindow& window, std::int64_t number) {
  return {number, window.axes[0].in, window.axes[1].in, window.axes[2].in};
}
__device__ inline Pixel out_pixel(const PoolWindow& window, std::int64_t number) {
  return {number, window.axes[0].out, window.axes[1].out, window.axes[2].out};
}

/// Calls tap(number of the input pixel in its image) for every one under the window of an output pixel, in order.
template <class Tap>
__device__ void for_each_input(const PoolWindow& window, const Pixel& output, Tap tap) {
  const PoolRange depths = window.axes[0].inputs_of(output.d);
  const PoolRange heights = window.axes[1].inputs_of(output.h);
  const PoolRange widths = window.axes[2].inputs_of(output.w);
  for (std::int64_t d = depths.begin; d < depths.end; ++d) {
    for (std::int64_t h = heights.begin; h < heights.end; ++h) {
      const std::int64_t line = (d * window.axes[1].in + h) * window.axes[2].in;
      for (std::int64_t w = widths.begin; w < widths.end; ++w) tap(line + w);
    }
  }
}

/// Calls tap(d, h, w, number in its image) for every output pixel whose window holds an input pixel, in order.
template <class Tap>
__device__ void for_each_output(const PoolWindow& window, const Pixel& input, Tap tap) {
  const PoolRange depths = window.axes[0].outputs_of(input.d);
  const PoolRange heights = window.axes[1].outputs_of(input.h);
  const PoolRange widths = window.axes[2].outputs_of(input.w);
  for (std::int64_t d = depths.begin; d < depths.end; ++d) {
    for (std::int64_t h = heights.begin; h < heights.end; ++h) {
      const std::int64_t line = (d * window.axes[1].out + h) * window.axes[2].out;
      for (std::int64_t w = widths.begin; w < widths.end; ++w) tap(d, h, w, line + w);
    }
  }
}

template <class T, int W>
__device__ Values<T, W> rounded(const float (&values)[W]) {
  Values<T, W> result;
#pragma unroll
  for (int w = 0; w < W; ++w) result.values[w] = from_float<T>(values[w]);
  return result;
}

/// Calls visit(pixel) for each of the thread's pixels out of so many.
template <class Visit>
__device__ void for_each_pixel(std::int64_t pixels, Visit visit) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
  for (std::int64_t pixel = static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; pixel < pixels;
       pixel += stride) {
    visit(pixel);
  }
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads) max_forward(PoolWindow window, const T* x, T* y, std::int32_t* indices,
                                                        std::int64_t pixels, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  for_each_pixel(pixels, [&](std::int64_t pixel) {
    const Pixel output = out_pixel(window, pixel);
    const T* const image = x + output.image * window.in_pixels() * channels + channel;
    float maxima[W] = {};
    Values<std::int32_t, W> winners;
#pragma unroll
    for (int w = 0; w < W; ++w) winners.values[w] = -1;
    for_each_input(window, output, [&](std::int64_t number) {
      const Values<T, W> values = load<W>(image + number * channels);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float value = to_float(values.values[w]);
        // The first one on ties; a NaN wins and stays.
        const bool greater = !(value <= maxima[w]) && maxima[w] == maxima[w];
        if (!greater && winners.values[w] >= 0) continue;
        maxima[w] = value;
        winners.values[w] = static_cast<std::int32_t>(number);
      }
    });
    store(rounded<T>(maxima), y + pixel * channels + channel);
    store(winners, indices + pixel * channels + channel);
  });
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    average_forward(PoolWindow window, const T* x, T* y, std::int64_t pixels, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  for_each_pixel(pixels, [&](std::int64_t pixel) {
    const Pixel output = out_pixel(window, pixel);
    const T* const image = x + output.image * window.in_pixels() * channels + channel;
    float sums[W] = {};
    for_each_input(window, output, [&](std::int64_t number) {
      const Values<T, W> values = load<W>(image + number * channels);
#pragma unroll
      for (int w = 0; w < W; ++w) sums[w] += to_float(values.values[w]);
    });
    const float factor = 1.0f / window.divisor(output.d, output.h, output.w);
#pragma unroll
    for (int w = 0; w < W; ++w) sums[w] *= factor;
    store(rounded<T>(sums), y + pixel * channels + channel);
  });
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads) max_backward(PoolWindow window, const T* dy, const std::int32_t* indices,
                                                         T* dx, std::int64_t pixels, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  for_each_pixel(pixels, [&](std::int64_t pixel) {
    const Pixel input = in_pixel(window, pixel);
    const std::int64_t image = input.image * window.out_pixels() * channels + channel;
    const auto self = static_cast<std::int32_t>(pixel - input.image * window.in_pixels());
    float sums[W] = {};
    for_each_output(window, input, [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t number) {
      const Values<std::int32_t, W> winners = load<W>(indices + image + number * channels);
      const Values<T, W> values = load<W>(dy + image + number * channels);
#pragma unroll
      for (int w = 0; w < W; ++w) sums[w] += winners.values[w] == self ? to_float(values.values[w]) : 0.0f;
    });
    store(rounded<T>(sums), dx + pixel * channels + channel);
  });
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    average_backward(PoolWindow window, const T* dy, T* dx, std::int64_t pixels, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  for_each_pixel(pixels, [&](std::int64_t pixel) {
    const Pixel input = in_pixel(window, pixel);
    const T* const image = dy + input.image * window.out_pixels() * channels + channel;
    float sums[W] = {};
    for_each_output(window, input, [&](std::int64_t d, std::int64_t h, std::int64_t w_out, std::int64_t number) {
      const Values<T, W> values = load<W>(image + number * channels);
      const float factor = 1.0f / window.divisor(d, h, w_out);
#pragma unroll
      for (int w = 0; w < W; ++w) sums[w] += factor * to_float(values.values[w]);
    });
    store(rounded<T>(sums), dx + pixel * channels + channel);
  });
}

}  // namespace

void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) {
  checks::pool_forward(geometry, x, y, indices);
  if (y.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const PoolWindow window(geometry, x.shape(), y.shape());
  const std::int64_t pixels = y.shape().rows();
  const std::int64_t channels = y.shape().back();
  const bool max = geometry.kind == PoolKind::kMax;
  const void* const winners = max ? indices.data() : nullptr;
  visit_channels(
      "pool_forward", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const dim3 grid = grid_over_rows(tiling, pixels, 1);
        if (max) {
          max_forward<T, W><<<grid, tiling.threads, 0, stream>>>(window, in<T>(x), out<T>(y),
                                                                 out<std::int32_t>(indices), pixels, channels);
        } else {
          average_forward<T, W><<<grid, tiling.threads, 0, stream>>>(window, in<T>(x), out<T>(y), pixels, channels);
        }
        check_launch("pool_forward");
      },
      x.data(), y.data(), winners);
}

void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) {
  checks::pool_backward(geometry, dy, indices, dx);
  if (dx.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const PoolWindow window(geometry, dx.shape(), dy.shape());
  const std::int64_t pixels = dx.shape().rows();
  const std::int64_t channels = dx.shape().back();
  const bool max = geometry.kind == PoolKind::kMax;
  const void* const winners = max ? indices.data() : nullptr;
  visit_channels(
      "pool_backward", dx.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const dim3 grid = grid_over_rows(tiling, pixels, 1);
        if (max) {
          max_backward<T, W><<<grid, tiling.threads, 0, stream>>>(window, in<T>(dy), in<std::int32_t>(indices),
                                                                  out<T>(dx), pixels, channels);
        } else {
          average_backward<T, W><<<grid, tiling.threads, 0, stream>>>(window, in<T>(dy), out<T>(dx), pixels, channels);
        }
        check_launch("pool_backward");
      },
      dy.data(), dx.data(), winners);
}

}  // namespace lockstep::kernels::cuda
