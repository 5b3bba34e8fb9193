// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/cuda/rows.cuh"
#include "runtime/kernels/functors/log_sum_exp.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/structure_checks.h"
#include "runtime/kernels/softmax.h"

namespace lockstep::kernels::cuda {

namespace {

/// Moves 4 bytes an element of 16-bit types and 8 of float32.
template <class T, int W, class Team>
__global__ void __launch_bounds__(kHoldingThreads)
    softmax_held(const T* x, bool log, T* y, std::int64_t rows, std::int64_t channels, Team team) {
  constexpr int kPacks = kHeld / W;
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    const unsigned n = live ? static_cast<unsigned>(channels) : 0;
    const auto place = [&](unsigned pack) { return (pack * team.size + team.rank()) * W; };
    float held[kHeld];
    float max = Exponentials().max;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
      const Values<T, W> values = load<W>(x + row * channels + place(p));
#pragma unroll
      for (int w = 0; w < W; ++w) {
        held[p * W + w] = to_float(values.values[w]);
        max = fmaxf(max, held[p * W + w]);
      }
    }
    max = team.max(max);
    float sum = 0;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float distance = held[p * W + w] - max;
        const float exponential = fast_exp(distance);
        sum += exponential;
        held[p * W + w] = log ? distance : exponential;
      }
    }
    sum = team.sum(sum);
    const float norm = log ? logf(sum) : 1.0f / sum;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
      Values<T, W> values;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        values.values[w] = from_float<T>(log ? held[p * W + w] - norm : held[p * W + w] * norm);
      }
      store(values, y + row * channels + place(p));
    }
  });
}

/// For rows of any length. Moves 6 bytes an element of 16-bit types and 12 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kStreamingThreads)
    softmax_streamed(const T* x, bool log, T* y, std::int64_t rows, std::int64_t channels, WholeBlock team) {
  for_each_row(team, rows, [&](std::int64_t row, bool) {
    const T* const from = x + row * channels;
    const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
    Exponentials part;
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
      const Values<T, W> values = load<W>(from + c);
      float largest = to_float(values.values[0]);
#pragma unroll
      for (int w = 1; w < W; ++w) largest = fmaxf(largest, to_float(values.values[w]));
      part.raise(largest);
#pragma unroll
      for (int w = 0; w < W; ++w) part.add(to_float(values.values[w]));
    }
    const float max = team.max(part.max);
    part.raise(max);
    const float sum = team.sum(part.sum);
    const float norm = log ? logf(sum) : 1.0f / sum;
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
      Values<T, W> values = load<W>(from + c);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float distance = to_float(values.values[w]) - max;
        values.values[w] = from_float<T>(log ? distance - norm : fast_exp(distance) * norm);
      }
      store(values, y + row * channels + c);
    }
  });
}

__device__ inline float summand(bool log, float y, float dy) { return log ? dy : dy * y; }
__device__ inline float gradient(bool log, float y, float dy, float sum) {
  return log ? dy - fast_exp(y) * sum : y * (dy - sum);
}

/// Moves 6 bytes an element of 16-bit types and 12 of float32.
template <class T, int W, class Team>
__global__ void __launch_bounds__(kHoldingThreads)
    backward_held(const T* y, bool log, const T* dy, T* dx, std::int64_t rows, std::int64_t channels, Team team) {
  constexpr int kPacks = kHeld / W;
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    const unsigned n = live ? static_cast<unsigned>(channels) : 0;
    const auto place = [&](unsigned pack) { return (pack * team.size + team.rank()) * W; };
    Values<T, W> ys[kPacks];
    Values<T, W> dys[kPacks];
    float sum = 0;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
      ys[p] = load<W>(y + row * channels + place(p));
      dys[p] = load<W>(dy + row * channels + place(p));
    }
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) sum += summand(log, to_float(ys[p].values[w]), to_float(dys[p].values[w]));
    }
    sum = team.sum(sum);
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        ys[p].values[w] = from_float<T>(gradient(log, to_float(ys[p].values[w]), to_float(dys[p].values[w]), sum));
      }
      store(ys[p], dx + row * channels + place(p));
    }
  });
}

/// For rows of any length. Moves 10 bytes an element of 16-bit types and 20 of float32.
template <class T, int W>
__global__ void __launch_bounds__(kStreamingThreads)
    backward_streamed(const T* y, bool log, const T* dy, T* dx, std::int64_t rows, std::int64_t channels,
                      WholeBlock team) {
  for_each_row(team, rows, [&](std::int64_t row, bool) {
    const std::int64_t first = row * channels;
    const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
    float sum = 0;
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
      const Values<T, W> ys = load<W>(y + first + c);
      const Values<T, W> dys = load<W>(dy + first + c);
#pragma unroll
      for (int w = 0; w < W; ++w) sum += summand(log, to_float(ys.values[w]), to_float(dys.values[w]));
    }
    sum = team.sum(sum);
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
      Values<T, W> ys = load<W>(y + first + c);
      const Values<T, W> dys = load<W>(dy + first + c);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        ys.values[w] = from_float<T>(gradient(log, to_float(ys.values[w]), to_float(dys.values[w]), sum));
      }
      store(ys, dx + first + c);
    }
  });
}

/// Where a column of [outer, n, inner] begins.
__device__ inline std::int64_t begin_of(const checks::Middle& extents, std::int64_t column) {
  return column / extents.inner * extents.n * extents.inner + column % extents.inner;
}

/// A thread a column: neighbours read neighbours.
template <class T>
__global__ void __launch_bounds__(kThreads) softmax_columns(const T* x, bool log, T* y, checks::Middle extents) {
  for (std::int64_t column = first(); column < extents.outer * extents.inner; column += step()) {
    const std::int64_t begin = begin_of(extents, column);
    const std::int64_t end = begin + extents.n * extents.inner;
    float max = Exponentials().max;
    for (std::int64_t at = begin; at < end; at += extents.inner) max = fmaxf(max, to_float(x[at]));
    float sum = 0;
    for (std::int64_t at = begin; at < end; at += extents.inner) sum += fast_exp(to_float(x[at]) - max);
    const float norm = log ? logf(sum) : 1.0f / sum;
    for (std::int64_t at = begin; at < end; at += extents.inner) {
      const float distance = to_float(x[at]) - max;
      y[at] = from_float<T>(log ? distance - norm : fast_exp(distance) * norm);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    backward_columns(const T* y, bool log, const T* dy, T* dx, checks::Middle extents) {
  for (std::int64_t column = first(); column < extents.outer * extents.inner; column += step()) {
    const std::int64_t begin = begin_of(extents, column);
    const std::int64_t end = begin + extents.n * extents.inner;
    float sum = 0;
    for (std::int64_t at = begin; at < end; at += extents.inner) {
      sum += summand(log, to_float(y[at]), to_float(dy[at]));
    }
    for (std::int64_t at = begin; at < end; at += extents.inner) {
      dx[at] = from_float<T>(gradient(log, to_float(y[at]), to_float(dy[at]), sum));
    }
  }
}

void softmax(const Tensor& x, bool log, const Tensor& y) {
  checks::softmax(x, y);
  if (x.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t rows = x.shape().rows();
  const std::int64_t channels = x.shape().back();
  visit_channels(
      "softmax", x.dtype(), channels,
      [&]<class T, int W>() {
        choose_row_kernel<W>(
            rows, channels,
            [&]<class Team>(const RowGrid& grid, Team team) {
              softmax_held<T, W, Team>
                  <<<grid.blocks, grid.threads, 0, stream>>>(in<T>(x), log, out<T>(y), rows, channels, team);
            },
            [&](const RowGrid& grid, WholeBlock team) {
              softmax_streamed<T, W>
                  <<<grid.blocks, grid.threads, 0, stream>>>(in<T>(x), log, out<T>(y), rows, channels, team);
            });
        check_launch("softmax");
      },
      x.data(), y.data());
}

void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  checks::softmax_backward(y, dy, dx);
  if (y.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t rows = y.shape().rows();
  const std::int64_t channels = y.shape().back();
  visit_channels(
      "softmax_backward", y.dtype(), channels,
      [&]<class T, int W>() {
        choose_row_kernel<W>(
            rows, channels,
            [&]<class Team>(const RowGrid& grid, Team team) {
              backward_held<T, W, Team><<<grid.blocks, grid.threads, 0, stream>>>(in<T>(y), log, in<T>(dy), out<T>(dx),
                                                                                  rows, channels, team);
            },
            [&](const RowGrid& grid, WholeBlock team) {
              backward_streamed<T, W><<<grid.blocks, grid.threads, 0, stream>>>(in<T>(y), log, in<T>(dy), out<T>(dx),
                                                                                rows, channels, team);
            });
        check_launch("softmax_backward");
      },
      y.data(), dy.data(), dx.data());
}

void softmax_middle(const Tensor& x, bool log, const Tensor& y) {
  const checks::Middle extents = checks::softmax_middle(x, y);
  if (x.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("softmax_middle", x.dtype(), [&]<class T>() {
    softmax_columns<<<blocks_for(extents.outer * extents.inner), kThreads, 0, gpu::current(device)>>>(
        in<T>(x), log, out<T>(y), extents);
  });
  check_launch("softmax_middle");
}

void softmax_middle_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) {
  const checks::Middle extents = checks::softmax_middle_backward(y, dy, dx);
  if (y.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  visit_floating("softmax_middle_backward", y.dtype(), [&]<class T>() {
    backward_columns<<<blocks_for(extents.outer * extents.inner), kThreads, 0, gpu::current(device)>>>(
        in<T>(y), log, in<T>(dy), out<T>(dx), extents);
  });
  check_launch("softmax_middle_backward");
}

}  // namespace

const Softmax kSoftmax{.softmax = softmax,
                       .softmax_backward = softmax_backward,
                       .softmax_middle = softmax_middle,
                       .softmax_middle_backward = softmax_middle_backward};

}  // namespace lockstep::kernels::cuda
