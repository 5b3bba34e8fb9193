// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/channel_statistics.cuh"
#include "runtime/kernels/cuda/occupancy.h"
#include "runtime/kernels/functors/batch_norm.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

struct ChannelMoments {
  double mean;
  double m2;
};

/// The chunks' statistics joined, in double and in two passes over the few of them: first the mean, then the distances
/// from it. For all threads of a block of kFoldLanes by kFoldLines, a channel a lane.
__device__ ChannelMoments join_chunks(const float* partials, std::int64_t channels, Chunks chunks) {
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
  return {center, sum_lines(squares)};
}

__global__ void __launch_bounds__(kFoldLanes* kFoldLines)
    fold_statistics(const float* partials, std::int64_t channels, Chunks chunks, float* mean, float* m2) {
  const ChannelMoments moments = join_chunks(partials, channels, chunks);
  const std::int64_t channel = first_channel<1>();
  if (threadIdx.y != 0 || channel >= channels) return;
  mean[channel] = static_cast<float>(moments.mean);
  m2[channel] = static_cast<float>(moments.m2);
}

struct Finalization {
  std::int64_t shares;
  std::int64_t channels;
  double epsilon;
  double momentum;
};

/// The results that a batch norm computes from its statistics.
struct Results {
  const float* running;  ///< null: there is none, and no next
  float* mean;
  float* inv_std;
  float* count;
  float* next_running;

  Results(const Tensor& running_in, const Tensor& mean_out, const Tensor& inv_std_out, const Tensor& count_out,
          const Tensor& next_out)
      : running(running_in.defined() ? in<float>(running_in) : nullptr),
        mean(out<float>(mean_out)),
        inv_std(out<float>(inv_std_out)),
        count(out<float>(count_out)),
        next_running(running_in.defined() ? out<float>(next_out) : nullptr) {}

  __device__ void write(std::int64_t c, const Finalization& of, const JoinedShares& all) const {
    mean[c] = static_cast<float>(all.mean);
    inv_std[c] = static_cast<float>(all.inv_std(of.epsilon));
    if (running == nullptr) return;
    next_running[c] = static_cast<float>(all.next_mean(static_cast<double>(running[c]), of.momentum));
    next_running[of.channels + c] =
        static_cast<float>(all.next_variance(static_cast<double>(running[of.channels + c]), of.momentum));
  }
};

/// fold_statistics() and finalize() of one share, to the same bits. The grid has a block even where there are no
/// channels: it writes the count.
__global__ void __launch_bounds__(kFoldLanes* kFoldLines)
    fold_and_finalize(const float* partials, Chunks chunks, Finalization of, Results results) {
  const ChannelMoments moments = join_chunks(partials, of.channels, chunks);
  if (threadIdx.y != 0) return;
  const std::int64_t channel = first_channel<1>();
  const float rows = static_cast<float>(chunks.rows);
  if (channel == 0) *results.count = rows;
  if (channel >= of.channels) return;
  JoinedShares all;
  all.add(static_cast<double>(static_cast<float>(moments.mean)), static_cast<double>(static_cast<float>(moments.m2)),
          static_cast<double>(rows));
  results.write(channel, of, all);
}

/// A thread a channel, over the ranks' shares in their order: a few bytes beside the passes over x.
__global__ void __launch_bounds__(kThreads) finalize(const float* packed, Finalization of, Results results) {
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
    if (c == 0) *results.count = static_cast<float>(rows);
    if (c >= of.channels) return;
    results.write(c, of, all);
  }
}

/// The chunks of x, and what their first stage leaves; undefined without channels.
struct MeasuredChunks {
  Chunks chunks;
  Tensor partials;
};

MeasuredChunks measure_chunks(const Tensor& x, Device device, cudaStream_t stream) {
  const std::int64_t rows = x.shape().rows();
  const std::int64_t channels = x.shape().back();
  MeasuredChunks measured{{rows, 1, 0}, {}};
  if (channels == 0) return measured;
  visit_channels(
      "batch_norm_statistics", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        const void* const kernel = reinterpret_cast<const void*>(&statistics_of_chunks<T, W>);
        const Chunks chunks = cut(tiling, rows, resident_blocks(device, kernel, tiling.block()));
        measured = {chunks, Tensor::empty({chunks.count, 2, channels}, DType::kFloat32, device)};
        statistics_of_chunks<T, W>
            <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count)), tiling.threads, 0, stream>>>(
                in<T>(x), channels, chunks, out<float>(measured.partials));
        check_launch("batch_norm_statistics");
      },
      x.data());
  return measured;
}

}  // namespace

void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) {
  checks::batch_norm_statistics(x, mean, m2);
  const std::int64_t channels = mean.numel();
  if (channels == 0) return;
  const Device device = mean.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const MeasuredChunks measured = measure_chunks(x, device, stream);
  fold_statistics<<<fold_blocks(channels), dim3(kFoldLanes, kFoldLines), 0, stream>>>(
      in<float>(measured.partials), channels, measured.chunks, out<float>(mean), out<float>(m2));
  check_launch("batch_norm_statistics, the chunks joined");
}

void batch_norm_measure(const Tensor& x, double epsilon, double momentum, const Tensor& running, const Tensor& mean,
                        const Tensor& inv_std, const Tensor& count, const Tensor& next_running) {
  checks::batch_norm_measure(x, running, mean, inv_std, count, next_running);
  const Device device = mean.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t channels = mean.numel();
  const MeasuredChunks measured = measure_chunks(x, device, stream);
  fold_and_finalize<<<std::max(fold_blocks(channels), 1u), dim3(kFoldLanes, kFoldLines), 0, stream>>>(
      measured.partials.defined() ? in<float>(measured.partials) : nullptr, measured.chunks,
      Finalization{1, channels, epsilon, momentum}, Results(running, mean, inv_std, count, next_running));
  check_launch("batch_norm_measure");
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
  finalize<<<blocks_for(channels), kThreads, 0, gpu::current(device)>>>(
      in<float>(packed), Finalization{packed.size(0), channels, epsilon, momentum},
      Results(running, mean, inv_std, count, next_running));
  check_launch("batch_norm_finalize");
}

}  // namespace lockstep::kernels::cuda
