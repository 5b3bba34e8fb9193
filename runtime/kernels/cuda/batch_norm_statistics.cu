// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/channel_statistics.cuh"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/functors/batch_norm.h"
#include "runtime/kernels/geometry/checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// The chunks' statistics joined, in double and in two passes over the few of them: first the mean, then the distances
/// from it.
__global__ void __launch_bounds__(kFoldLanes* kFoldLines)
    fold_statistics(const float* partials, std::int64_t channels, Chunks chunks, float* mean, float* m2) {
  const std::int64_t channel = first_channel<1>();
  const bool live = channel < channels;
  const auto rows_of = [&](std::int64_t chunk) { return static_cast<double>(chunks.end(chunk) - chunks.begin(chunk)); };
  double sum = 0;
  for (std::int64_t chunk = threadIdx.y; live && chunk < chunks.count; chunk += kFoldLines) {
    sum += rows_of(chunk) * static_cast<double>(partials[chunk * 2 * channels + channel]);
  }
  const double center = chunks.rows > 0 ? sum_lines(sum) / static_cast<double>(chunks.rows) : 0.0;
  double squares = 0;
  for (std::int64_t chunk = threadIdx.y; live && chunk < chunks.count; chunk += kFoldLines) {
    const float* const partial = partials + chunk * 2 * channels + channel;
    const double distance = static_cast<double>(partial[0]) - center;
    squares += static_cast<double>(partial[channels]) + rows_of(chunk) * distance * distance;
  }
  squares = sum_lines(squares);
  if (threadIdx.y != 0 || !live) return;
  mean[channel] = static_cast<float>(center);
  m2[channel] = static_cast<float>(squares);
}

struct Finalization {
  std::int64_t shares;
  std::int64_t channels;
  double epsilon;
  double momentum;
};

/// A thread a channel, over the ranks' shares in their order: a few bytes beside the passes over x.
__global__ void __launch_bounds__(kThreads) finalize(const float* packed, Finalization of, const float* running,
                                                     float* mean, float* inv_std, float* count, float* next_running) {
  const std::int64_t stride = 2 * of.channels + 1;
  // The grid has a thread even where there are no channels: it writes the count.
  for (std::int64_t c = first(); c < of.channels || c == 0; c += step()) {
    JoinedShares all;
    double rows = 0;
    for (std::int64_t share = 0; share < of.shares; ++share) {
      const float* const part = packed + share * stride;
      const double added = static_cast<double>(part[2 * of.channels]);
      if (c < of.channels) all.add(static_cast<double>(part[c]), static_cast<double>(part[of.channels + c]), added);
      rows += added;
    }
    if (c == 0) *count = static_cast<float>(rows);
    if (c >= of.channels) return;
    mean[c] = static_cast<float>(all.mean);
    inv_std[c] = static_cast<float>(all.inv_std(of.epsilon));
    if (running == nullptr) continue;
    next_running[c] = static_cast<float>(all.next_mean(static_cast<double>(running[c]), of.momentum));
    next_running[of.channels + c] =
        static_cast<float>(all.next_variance(static_cast<double>(running[of.channels + c]), of.momentum));
  }
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) {
  checks::batch_norm_statistics(x, mean, m2);
  const std::int64_t channels = mean.numel();
  if (channels == 0) return;
  const Device device = mean.device();
  const gpu::DeviceGuard guard(device);
  visit_channels(
      "batch_norm_statistics", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const Chunks chunks = cut(tiling, x.shape().rows());
        const Tensor partials = Tensor::empty({chunks.count, 2, channels}, DType::kFloat32, device);
        const cudaStream_t stream = gpu::current(device);
        statistics_of_chunks<T, W>
            <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count)), tiling.threads, 0, stream>>>(
                in<T>(x), channels, chunks, out<float>(partials));
        check_launch("batch_norm_statistics");
        fold_statistics<<<fold_blocks(channels), dim3(kFoldLanes, kFoldLines), 0, stream>>>(
            in<float>(partials), channels, chunks, out<float>(mean), out<float>(m2));
        check_launch("batch_norm_statistics, the chunks joined");
      },
      x.data());
}

void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                         const Tensor& mean, const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_finalize(packed, running, mean, inv_std, count, next_running);
  if (packed.dtype() != DType::kFloat32) {
    throw ShapeError("batch_norm_finalize: a GPU keeps statistics in float32, found " + describe(packed));
  }
  const Device device = mean.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t channels = mean.numel();
  const bool with_running = running.defined();
  finalize<<<blocks_for(channels), kThreads, 0, gpu::current(device)>>>(
      in<float>(packed), {packed.size(0), channels, epsilon, momentum}, with_running ? in<float>(running) : nullptr,
      out<float>(mean), out<float>(inv_std), out<float>(count), with_running ? out<float>(next_running) : nullptr);
  check_launch("batch_norm_finalize");
}

}  // namespace lockstep::kernels::cuda
