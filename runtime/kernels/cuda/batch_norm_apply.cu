// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/batch_norm_value.cuh"
#include "runtime/kernels/cuda/channel_tiles.cuh"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// Rows that a thread loads before it uses the first.
template <bool with_residual>
constexpr int kAppliedRows = with_residual ? 2 : 4;

struct AppliedParameters {
  const float* mean;
  const float* inv_std;
  const float* gamma;
  const float* beta;
};

/// Moves 4 bytes an element of 16-bit types and 8 of float32, and half as many again with a residual. y may be the
/// residual: a thread has read what it overwrites.
template <class T, int W, bool with_residual>
__global__ void __launch_bounds__(kThreads) apply(const T* x, AppliedParameters parameters, const T* residual,
                                                  bool with_relu, T* y, std::int64_t rows, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  float mean[W], scale[W], shift[W];
#pragma unroll
  for (int w = 0; w < W; ++w) {
    mean[w] = parameters.mean[channel + w];
    scale[w] = parameters.inv_std[channel + w] * parameters.gamma[channel + w];
    shift[w] = parameters.beta[channel + w];
  }
  constexpr int kRows = kAppliedRows<with_residual>;
  const std::int64_t lines = blockDim.y;
  const std::int64_t stride = gridDim.y * kRows * lines;
  for (std::int64_t begin = blockIdx.y * kRows * lines + threadIdx.y; begin < rows; begin += stride) {
    Values<T, W> values[kRows];
    Values<T, W> added[kRows];
#pragma unroll
    for (int b = 0; b < kRows; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row >= rows) continue;
      values[b] = load<W>(x + row * channels + channel);
      if constexpr (with_residual) added[b] = load<W>(residual + row * channels + channel);
    }
#pragma unroll
    for (int b = 0; b < kRows; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row >= rows) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        float v = normalized(to_float(values[b].values[w]), mean[w], scale[w], shift[w]);
        if constexpr (with_residual) v += to_float(added[b].values[w]);
        values[b].values[w] = from_float<T>(with_relu ? Relu::value(v) : v);
      }
      store(values[b], y + row * channels + channel);
    }
  }
}

}  // namespace

void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                      const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) {
  checks::batch_norm_apply(x, mean, inv_std, gamma, beta, residual, y);
  if (x.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t rows = x.shape().rows();
  const std::int64_t channels = mean.numel();
  const void* const added = residual.defined() ? residual.data() : nullptr;
  visit_channels(
      "batch_norm_apply", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const AppliedParameters parameters{in<float>(mean), in<float>(inv_std), in<float>(gamma), in<float>(beta)};
        const auto launch = [&]<bool with_residual>() {
          apply<T, W, with_residual>
              <<<grid_over_rows(tiling, rows, kAppliedRows<with_residual>), tiling.threads, 0, gpu::current(device)>>>(
                  in<T>(x), parameters, static_cast<const T*>(added), relu, out<T>(y), rows, channels);
        };
        added != nullptr ? launch.template operator()<true>() : launch.template operator()<false>();
        check_launch("batch_norm_apply");
      },
      x.data(), added, y.data());
}

}  // namespace lockstep::kernels::cuda
