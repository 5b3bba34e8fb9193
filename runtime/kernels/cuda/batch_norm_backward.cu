// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/normalization_sums.cuh"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/functors/batch_norm.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// Rows that a thread loads before it uses the first: two or three accesses each.
constexpr int kBatch = 2;

/// What both passes read: x, dy, and where relu masks it y, W channels at a time.
template <class T, int W, bool masked>
struct Gradients {
  Values<T, W> x;
  Values<T, W> dy;
  Values<T, W> y;

  __device__ void read(const T* xs, const T* dys, const T* ys, std::int64_t at) {
    x = load<W>(xs + at);
    dy = load<W>(dys + at);
    if constexpr (masked) y = load<W>(ys + at);
  }
  __device__ float x_at(int w) const { return to_float(x.values[w]); }
  __device__ float dy_at(int w) const {
    const float d = to_float(dy.values[w]);
    if constexpr (masked) return Relu::backward(to_float(y.values[w]), d);
    return d;
  }
};

struct Sums {
  float dy = 0;
  float dy_xmu = 0;
};

/// partials [chunks, 2, channels]: both sums over each chunk's rows. Reads 4 bytes an element of 16-bit types and 8 of
/// float32, half as many again with a mask.
template <class T, int W, bool masked>
__global__ void __launch_bounds__(kThreads) sums_of_chunks(const T* x, const float* mean, const T* dy, const T* y,
                                                           std::int64_t channels, Chunks chunks, float* partials) {
  __shared__ Sums shared[W][kThreads];
  const std::int64_t channel = first_channel<W>();
  const std::int64_t end = chunks.end(blockIdx.y);
  const std::int64_t lines = blockDim.y;
  Sums sums[W];
  if (channel < channels) {
    float center[W];
#pragma unroll
    for (int w = 0; w < W; ++w) center[w] = mean[channel + w];
    for (std::int64_t begin = chunks.begin(blockIdx.y) + threadIdx.y; begin < end; begin += kBatch * lines) {
      Gradients<T, W, masked> batch[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const std::int64_t row = begin + b * lines;
        if (row < end) batch[b].read(x, dy, y, row * channels + channel);
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (begin + b * lines >= end) continue;
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const float d = batch[b].dy_at(w);
          sums[w].dy += d;
          sums[w].dy_xmu += d * (batch[b].x_at(w) - center[w]);
        }
      }
    }
  }
  const unsigned self = thread_in_block();
  const auto leave = [&] {
#pragma unroll
    for (int w = 0; w < W; ++w) shared[w][self] = sums[w];
  };
  fold_lines(leave, [&](unsigned other) {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      sums[w].dy += shared[w][other].dy;
      sums[w].dy_xmu += shared[w][other].dy_xmu;
    }
  });
  if (threadIdx.y != 0 || channel >= channels) return;
  float* const partial = partials + blockIdx.y * 2 * channels + channel;
#pragma unroll
  for (int w = 0; w < W; ++w) {
    partial[w] = sums[w].dy;
    partial[channels + w] = sums[w].dy_xmu;
  }
}

struct Parameters {
  const float* mean;
  const float* inv_std;
  const float* gamma;
  const float* sum_dy;
  const float* sum_dy_xmu;
  const float* count;  ///< null: the statistics are constants
};

/// Moves 6 bytes an element of 16-bit types and 12 of float32; a third as many more with a mask, and with dresidual.
/// dresidual may be dy: a thread has read what it overwrites.
template <class T, int W, bool masked>
__global__ void __launch_bounds__(kThreads)
    backward_apply(const T* x, Parameters parameters, const T* dy, const T* y, T* dx, T* dresidual, std::int64_t rows,
                   std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  const float count = parameters.count != nullptr ? *parameters.count : 0.0f;
  float mean[W], scale[W], mean_dy[W], slope[W];
#pragma unroll
  for (int w = 0; w < W; ++w) {
    const std::int64_t c = channel + w;
    const float inv_std = parameters.inv_std[c];
    mean[w] = parameters.mean[c];
    scale[w] = parameters.gamma[c] * inv_std;
    mean_dy[w] = count > 0 ? parameters.sum_dy[c] / count : 0.0f;
    slope[w] = count > 0 ? inv_std * inv_std * (parameters.sum_dy_xmu[c] / count) : 0.0f;
  }
  const std::int64_t lines = blockDim.y;
  const std::int64_t stride = gridDim.y * kBatch * lines;
  for (std::int64_t begin = blockIdx.y * kBatch * lines + threadIdx.y; begin < rows; begin += stride) {
    Gradients<T, W, masked> batch[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row < rows) batch[b].read(x, dy, y, row * channels + channel);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row >= rows) continue;
      Values<T, W> gradient;
      Values<T, W> passed_on;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float d = batch[b].dy_at(w);
        gradient.values[w] =
            from_float<T>(batch_norm_backward(batch[b].x_at(w), d, mean[w], scale[w], mean_dy[w], slope[w]));
        passed_on.values[w] = from_float<T>(d);
      }
      store(gradient, dx + row * channels + channel);
      if (dresidual != nullptr) store(passed_on, dresidual + row * channels + channel);
    }
  }
}

}  // namespace

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& y, bool relu,
                                const Tensor& sum_dy, const Tensor& sum_dy_xmu) {
  checks::batch_norm_backward_reduce(x, mean, dy, y, relu, sum_dy, sum_dy_xmu);
  const std::int64_t channels = mean.numel();
  if (channels == 0) return;
  const Device device = sum_dy.device();
  const gpu::DeviceGuard guard(device);
  const void* const output = relu ? y.data() : nullptr;
  visit_channels(
      "batch_norm_backward_reduce", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const Chunks chunks = cut(tiling, x.shape().rows());
        const Tensor partials = Tensor::empty({chunks.count, 2, channels}, DType::kFloat32, device);
        const cudaStream_t stream = gpu::current(device);
        const auto launch = [&](auto* kernel) {
          kernel<<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count)), tiling.threads, 0, stream>>>(
              in<T>(x), in<float>(mean), in<T>(dy), static_cast<const T*>(output), channels, chunks,
              out<float>(partials));
        };
        relu ? launch(&sums_of_chunks<T, W, true>) : launch(&sums_of_chunks<T, W, false>);
        check_launch("batch_norm_backward_reduce");
        launch_fold_gradient_sums(partials, channels, sum_dy_xmu, sum_dy, stream);
      },
      x.data(), dy.data(), output);
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const Tensor& y, bool relu, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx,
                               const Tensor& dresidual) {
  checks::batch_norm_backward_apply(x, mean, inv_std, gamma, dy, y, relu, sum_dy, sum_dy_xmu, count, dx, dresidual);
  if (x.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t rows = x.shape().rows();
  const std::int64_t channels = mean.numel();
  const bool of_batch = count.defined();
  const Parameters parameters{in<float>(mean),
                              in<float>(inv_std),
                              in<float>(gamma),
                              of_batch ? in<float>(sum_dy) : nullptr,
                              of_batch ? in<float>(sum_dy_xmu) : nullptr,
                              of_batch ? in<float>(count) : nullptr};
  const void* const output = relu ? y.data() : nullptr;
  void* const passed_on = dresidual.defined() ? dresidual.data() : nullptr;
  visit_channels(
      "batch_norm_backward_apply", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const auto launch = [&](auto* kernel) {
          kernel<<<grid_over_rows(tiling, rows, kBatch), tiling.threads, 0, gpu::current(device)>>>(
              in<T>(x), parameters, in<T>(dy), static_cast<const T*>(output), out<T>(dx), static_cast<T*>(passed_on),
              rows, channels);
        };
        relu ? launch(&backward_apply<T, W, true>) : launch(&backward_apply<T, W, false>);
        check_launch("batch_norm_backward_apply");
      },
      x.data(), dy.data(), output, dx.data(), passed_on);
}

}  // namespace lockstep::kernels::cuda
