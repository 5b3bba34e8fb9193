// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/channel_statistics.cuh"
#include "runtime/kernels/cuda/normalization_sums.cuh"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// The most blocks along grid.z.
constexpr std::int64_t kMaxSamples = 65535;

/// x [samples, rows, channels]
struct Samples {
  std::int64_t samples;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t groups;

  Samples(const Tensor& x, const Tensor& inv_std)
      : samples(x.size(0)), rows(1), channels(x.shape().back()), groups(inv_std.shape().back()) {
    for (int d = 1; d + 1 < x.shape().rank(); ++d) rows *= x.size(d);
  }

  __host__ __device__ std::int64_t width() const { return channels / groups; }
  /// Elements of a group; at least 1, so that mean and variance of no elements are 0.
  __device__ double group_size() const { return fmax(static_cast<double>(rows * width()), 1.0); }

  /// Calls f(the first sample, how many) for as many as fit a grid.
  template <class F>
  void for_each_slice(F f) const {
    for (std::int64_t first = 0; first < samples; first += kMaxSamples) {
      f(first, static_cast<unsigned>(std::min(kMaxSamples, samples - first)));
    }
  }
};

/// Chunks of a sample's rows; fewer of them where there are many samples.
Chunks cut_sample(const Tiling& tiling, const Samples& of) {
  Tiling wider = tiling;
  wider.tiles = static_cast<unsigned>(std::min<std::int64_t>(tiling.tiles * of.samples, kReductionBlocks));
  return cut(wider, of.rows);
}

__device__ inline double warp_sum(double value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, static_cast<int>(distance));
  }
  return value;
}

/// Blocks of whole warps, a warp a group.
unsigned blocks_of_groups(const Samples& of) { return blocks_for(of.samples * of.groups * kWarp); }

/// Calls f(sample, group) for the groups of this warp.
template <class F>
__device__ void for_each_group(const Samples& of, F f) {
  const std::int64_t warps = step() / kWarp;
  for (std::int64_t at = first() / kWarp; at < of.samples * of.groups; at += warps) f(at / of.groups, at % of.groups);
}

/// The statistics of a group's channels and chunks joined, in double and in two passes over the few of them.
__global__ void __launch_bounds__(kThreads)
    join_statistics(const float* partials, Samples of, Chunks chunks, double epsilon, float* mean, float* inv_std) {
  for_each_group(of, [&](std::int64_t sample, std::int64_t group) {
    const float* const parts = partials + sample * chunks.count * 2 * of.channels + group * of.width();
    const auto for_each_part = [&](auto f) {
      for (std::int64_t i = threadIdx.x % kWarp; i < chunks.count * of.width(); i += kWarp) {
        const std::int64_t chunk = i / of.width();
        const float* const part = parts + chunk * 2 * of.channels + i % of.width();
        f(static_cast<double>(chunks.end(chunk) - chunks.begin(chunk)), static_cast<double>(part[0]),
          static_cast<double>(part[of.channels]));
      }
    };
    double sum = 0;
    for_each_part([&](double rows, double of_part, double) { sum += rows * of_part; });
    const double center = warp_sum(sum) / of.group_size();
    double squares = 0;
    for_each_part([&](double rows, double of_part, double m2) {
      squares += m2 + rows * (of_part - center) * (of_part - center);
    });
    squares = warp_sum(squares);
    if (threadIdx.x % kWarp != 0) return;
    mean[sample * of.groups + group] = static_cast<float>(center);
    inv_std[sample * of.groups + group] = static_cast<float>(1 / sqrt(squares / of.group_size() + epsilon));
  });
}

/// Moves 4 bytes an element of 16-bit types and 8 of float32.
template <class T, class Y, int W>
__global__ void __launch_bounds__(kThreads)
    group_norm_apply(const T* x, const float* weight, const float* bias, GroupStatistics statistics, Y* y,
                     std::int64_t rows, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  x += blockIdx.z * rows * channels + channel;
  y += blockIdx.z * rows * channels + channel;
  const Values<float, W> gamma = parameters_at<W>(weight, channel, 1.0f);
  const Values<float, W> beta = parameters_at<W>(bias, channel, 0.0f);
  float center[W], scale[W];
#pragma unroll
  for (int w = 0; w < W; ++w) {
    center[w] = statistics.center(0, channel + w);
    scale[w] = statistics.scale(0, channel + w) * gamma.values[w];
  }
  const std::int64_t lines = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 2
  for (std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += lines) {
    const Values<T, W> values = load<W>(x + row * channels);
    Values<Y, W> result;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      result.values[w] = from_float<Y>((to_float(values.values[w]) - center[w]) * scale[w] + beta.values[w]);
    }
    store(result, y + row * channels);
  }
}

/// sums [samples, 2, channels] of the chunks' partials, and averages [samples, groups, 2]: over a group, of dy weight
/// and of dy weight (x - mean) inv_std. A lane keeps to its channels, so that each sum is written once.
__global__ void __launch_bounds__(kThreads) average_gradients(const float* partials, const float* weight, Samples of,
                                                              std::int64_t chunks, float* sums, float* averages) {
  for_each_group(of, [&](std::int64_t sample, std::int64_t group) {
    double through_mean = 0;
    double through_scale = 0;
    for (std::int64_t i = threadIdx.x % kWarp; i < of.width(); i += kWarp) {
      const std::int64_t channel = group * of.width() + i;
      const float* part = partials + sample * chunks * 2 * of.channels + channel;
      double sum = 0;
      double product = 0;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk, part += 2 * of.channels) {
        sum += static_cast<double>(part[0]);
        product += static_cast<double>(part[of.channels]);
      }
      sums[sample * 2 * of.channels + channel] = static_cast<float>(sum);
      sums[(sample * 2 + 1) * of.channels + channel] = static_cast<float>(product);
      const double factor = weight != nullptr ? static_cast<double>(weight[channel]) : 1.0;
      through_mean += factor * sum;
      through_scale += factor * product;
    }
    through_mean = warp_sum(through_mean);
    through_scale = warp_sum(through_scale);
    if (threadIdx.x % kWarp != 0) return;
    float* const to = averages + (sample * of.groups + group) * 2;
    to[0] = static_cast<float>(through_mean / of.group_size());
    to[1] = static_cast<float>(through_scale / of.group_size());
  });
}

/// Moves 6 bytes an element of 16-bit types and 12 of float32.
template <class T, class Y, int W>
__global__ void __launch_bounds__(kThreads)
    group_norm_dx(const T* x, const float* weight, GroupStatistics statistics, const float* averages, const Y* dy,
                  T* dx, std::int64_t rows, std::int64_t channels) {
  const std::int64_t channel = first_channel<W>();
  if (channel >= channels) return;
  const std::int64_t offset = blockIdx.z * rows * channels + channel;
  const Values<float, W> gamma = parameters_at<W>(weight, channel, 1.0f);
  float center[W], scale[W], through_mean[W], through_scale[W];
#pragma unroll
  for (int w = 0; w < W; ++w) {
    const float* const average = averages + statistics.group(channel + w) * 2;
    center[w] = statistics.center(0, channel + w);
    scale[w] = statistics.scale(0, channel + w);
    through_mean[w] = average[0];
    through_scale[w] = average[1];
  }
  const std::int64_t lines = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 2
  for (std::int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += lines) {
    const Values<T, W> xs = load<W>(x + offset + row * channels);
    const Values<Y, W> dys = load<W>(dy + offset + row * channels);
    Values<T, W> result;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      const float own = to_float(dys.values[w]) * gamma.values[w];
      const float normal = (to_float(xs.values[w]) - center[w]) * scale[w];
      result.values[w] = from_float<T>(scale[w] * (own - through_mean[w] - normal * through_scale[w]));
    }
    store(result, dx + offset + row * channels);
  }
}

}  // namespace

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::group_norm(x, weight, bias, y, mean, inv_std);
  const Samples of(x, inv_std);
  if (of.samples == 0 || of.channels == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  visit_channels(
      "group_norm", x.dtype(), of.channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(of.channels);
        const Chunks chunks = cut_sample(tiling, of);
        const Tensor partials = Tensor::empty({of.samples, chunks.count, 2, of.channels}, DType::kFloat32, device);
        of.for_each_slice([&](std::int64_t first, unsigned count) {
          statistics_of_chunks<T, W>
              <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count), count), tiling.threads, 0, stream>>>(
                  in<T>(x) + first * of.rows * of.channels, of.channels, chunks,
                  out<float>(partials) + first * chunks.count * 2 * of.channels);
        });
        check_launch("group_norm, statistics");
        join_statistics<<<blocks_of_groups(of), kThreads, 0, stream>>>(in<float>(partials), of, chunks, epsilon,
                                                                       out<float>(mean), out<float>(inv_std));
        check_launch("group_norm, the chunks joined");
        visit_result<T>(y, [&]<class Y>() {
          dim3 grid = grid_over_rows(tiling, of.rows, 1);
          of.for_each_slice([&](std::int64_t first, unsigned count) {
            grid.z = count;
            const std::int64_t offset = first * of.rows * of.channels;
            const GroupStatistics statistics{in<float>(mean) + first * of.groups,
                                             in<float>(inv_std) + first * of.groups, of.groups, of.width()};
            group_norm_apply<T, Y, W><<<grid, tiling.threads, 0, stream>>>(in<T>(x) + offset, pointer_of(weight),
                                                                           pointer_of(bias), statistics,
                                                                           out<Y>(y) + offset, of.rows, of.channels);
          });
        });
        check_launch("group_norm");
      },
      x.data(), y.data(), pointer_of(weight), pointer_of(bias));
}

void group_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::group_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  const Samples of(x, inv_std);
  if (of.channels == 0) return;
  const Device device = x.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const Tensor sums = Tensor::empty({of.samples, 2, of.channels}, DType::kFloat32, device);
  const auto statistics_from = [&](std::int64_t first) {
    return GroupStatistics{in<float>(mean) + first * of.groups, in<float>(inv_std) + first * of.groups, of.groups,
                           of.width()};
  };
  void* const to = dx.defined() ? dx.data() : nullptr;
  const auto launch = [&]<class T, class Y, int W>() {
    const Tiling tiling = tile<W>(of.channels);
    const Chunks chunks = cut_sample(tiling, of);
    const Tensor partials = Tensor::empty({of.samples, chunks.count, 2, of.channels}, DType::kFloat32, device);
    const Tensor averages = Tensor::empty({of.samples, of.groups, 2}, DType::kFloat32, device);
    of.for_each_slice([&](std::int64_t first, unsigned count) {
      const std::int64_t offset = first * of.rows * of.channels;
      gradient_sums_of_chunks<T, Y, W>
          <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count), count), tiling.threads, 0, stream>>>(
              in<T>(x) + offset, in<Y>(dy) + offset, statistics_from(first), of.channels, chunks,
              out<float>(partials) + first * chunks.count * 2 * of.channels);
    });
    check_launch("group_norm_backward, sums");
    average_gradients<<<blocks_of_groups(of), kThreads, 0, stream>>>(
        in<float>(partials), pointer_of(weight), of, chunks.count, out<float>(sums), out<float>(averages));
    check_launch("group_norm_backward, averages");
    if (!dx.defined()) return;
    dim3 grid = grid_over_rows(tiling, of.rows, 1);
    of.for_each_slice([&](std::int64_t first, unsigned count) {
      grid.z = count;
      const std::int64_t offset = first * of.rows * of.channels;
      group_norm_dx<T, Y, W><<<grid, tiling.threads, 0, stream>>>(
          in<T>(x) + offset, pointer_of(weight), statistics_from(first), in<float>(averages) + first * of.groups * 2,
          in<Y>(dy) + offset, out<T>(dx) + offset, of.rows, of.channels);
    });
    check_launch("group_norm_backward");
  };
  if (of.samples > 0) {
    visit_channels(
        "group_norm_backward", x.dtype(), of.channels,
        [&]<class T, int W>() { visit_result<T>(dy, [&]<class Y>() { launch.template operator()<T, Y, W>(); }); },
        x.data(), dy.data(), to, pointer_of(weight));
  }
  if (dweight.defined() || dbias.defined()) launch_fold_gradient_sums(sums, of.channels, dweight, dbias, stream);
}

}  // namespace lockstep::kernels::cuda
