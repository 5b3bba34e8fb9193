// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "runtime/kernels/cuda/normalization_sums.cuh"
#include "runtime/kernels/cuda/rows.cuh"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

struct RowExtents {
  std::int64_t count;
  std::int64_t channels;
};

struct LayerNormParameters {
  const float* weight;  ///< null: ones
  const float* bias;    ///< null: zeros
  float epsilon;
};

struct Statistics {
  float* mean;  ///< null: nothing is subtracted
  float* inv_std;
};

/// visit_result() of a result that may also have 16 bits where T is float.
template <class T, class F>
void visit_row_result(const Tensor& y, F&& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (y.dtype() == DType::kFloat16) return f.template operator()<Half>();
    if (y.dtype() == DType::kBFloat16) return f.template operator()<BFloat16>();
  }
  visit_result<T>(y, f);
}

__device__ inline float inverse_deviation(float squares, std::int64_t channels, float epsilon) {
  return 1.0f / sqrtf(squares / static_cast<float>(channels) + epsilon);
}

template <class Y, int W>
__device__ void write_normal(const float* values, float center, float scale, const LayerNormParameters& parameters,
                             std::int64_t channel, Y* y) {
  const Values<float, W> weight = parameters_at<W>(parameters.weight, channel, 1.0f);
  const Values<float, W> bias = parameters_at<W>(parameters.bias, channel, 0.0f);
  Values<Y, W> result;
#pragma unroll
  for (int w = 0; w < W; ++w) {
    result.values[w] = from_float<Y>((values[w] - center) * scale * weight.values[w] + bias.values[w]);
  }
  store(result, y + channel);
}

/// Moves 4 bytes an element of 16-bit types and 8 of float32.
template <class T, class Y, int W, class Team>
__global__ void __launch_bounds__(kHoldingThreads) layer_norm_held(const T* x, LayerNormParameters parameters, Y* y,
                                                                   Statistics statistics, RowExtents rows, Team team) {
  constexpr int kPacks = kHeld / W;
  for_each_row(team, rows.count, [&](std::int64_t row, bool live) {
    const unsigned n = live ? static_cast<unsigned>(rows.channels) : 0;
    const std::int64_t first = row * rows.channels;
    const auto place = [&](unsigned pack) { return (pack * team.size + team.rank()) * W; };
    float held[kHeld];
    float sum = 0;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
      const Values<T, W> values = load<W>(x + first + place(p));
#pragma unroll
      for (int w = 0; w < W; ++w) {
        held[p * W + w] = to_float(values.values[w]);
        sum += held[p * W + w];
      }
    }
    float center = 0;
    if (statistics.mean != nullptr) center = team.sum(sum) / static_cast<float>(rows.channels);
    float squares = 0;
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float distance = held[p * W + w] - center;
        squares += distance * distance;
      }
    }
    const float scale = inverse_deviation(team.sum(squares), rows.channels, parameters.epsilon);
    if (live && team.rank() == 0) {
      if (statistics.mean != nullptr) statistics.mean[row] = center;
      statistics.inv_std[row] = scale;
    }
#pragma unroll
    for (unsigned p = 0; p < kPacks; ++p) {
      if (place(p) >= n) continue;
      write_normal<Y, W>(held + p * W, center, scale, parameters, place(p), y + first);
    }
  });
}

/// Calls f(channel, values) for the packs of a row that this thread has.
template <int W, class T, class F>
__device__ void for_each_pack(const WholeBlock& team, const T* row, std::int64_t channels, F f) {
  const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
  for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
    const Values<T, W> values = load<W>(row + c);
    float floats[W];
#pragma unroll
    for (int w = 0; w < W; ++w) floats[w] = to_float(values.values[w]);
    f(c, floats);
  }
}

/// For rows of any length, which are read three times, mostly from the L2 cache.
template <class T, class Y, int W>
__global__ void __launch_bounds__(kStreamingThreads)
    layer_norm_streamed(const T* x, LayerNormParameters parameters, Y* y, Statistics statistics, RowExtents rows,
                        WholeBlock team) {
  for_each_row(team, rows.count, [&](std::int64_t row, bool) {
    const T* const from = x + row * rows.channels;
    float center = 0;
    if (statistics.mean != nullptr) {
      float sum = 0;
      for_each_pack<W>(team, from, rows.channels, [&](std::int64_t, const float* values) {
#pragma unroll
        for (int w = 0; w < W; ++w) sum += values[w];
      });
      center = team.sum(sum) / static_cast<float>(rows.channels);
    }
    float squares = 0;
    for_each_pack<W>(team, from, rows.channels, [&](std::int64_t, const float* values) {
#pragma unroll
      for (int w = 0; w < W; ++w) squares += (values[w] - center) * (values[w] - center);
    });
    const float scale = inverse_deviation(team.sum(squares), rows.channels, parameters.epsilon);
    if (team.rank() == 0) {
      if (statistics.mean != nullptr) statistics.mean[row] = center;
      statistics.inv_std[row] = scale;
    }
    for_each_pack<W>(team, from, rows.channels, [&](std::int64_t c, const float* values) {
      write_normal<Y, W>(values, center, scale, parameters, c, y + row * rows.channels);
    });
  });
}

/// A pack of the backward pass: `own` = dy weight and `normal` = (x - mean) inv_std.
template <class T, class Y, int W>
struct GradientPack {
  float own[W];
  float normal[W];

  __device__ void read(const T* x, const Y* dy, const float* weight, std::int64_t channel, float center, float scale) {
    const Values<T, W> xs = load<W>(x + channel);
    const Values<Y, W> dys = load<W>(dy + channel);
    const Values<float, W> factor = parameters_at<W>(weight, channel, 1.0f);
#pragma unroll
    for (int w = 0; w < W; ++w) {
      own[w] = to_float(dys.values[w]) * factor.values[w];
      normal[w] = (to_float(xs.values[w]) - center) * scale;
    }
  }
  __device__ void add_to(float& sum, float& product) const {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      sum += own[w];
      product += own[w] * normal[w];
    }
  }
  __device__ void write(T* dx, float scale, float through_mean, float through_scale) const {
    Values<T, W> result;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      result.values[w] = from_float<T>(scale * (own[w] - through_mean - normal[w] * through_scale));
    }
    store(result, dx);
  }
};

/// Rows that are short enough are read once: 6 bytes an element of 16-bit types and 12 of float32 are moved; longer
/// ones twice. A pack is read anew for writing where it is not held.
template <class T, class Y, int W, class Team, bool held>
__global__ void __launch_bounds__(held ? kHoldingThreads : kStreamingThreads)
    layer_norm_dx(const T* x, const float* weight, RowStatistics statistics, const Y* dy, T* dx, RowExtents rows,
                  Team team) {
  constexpr unsigned kPacks = held ? kHeld / W : 1;
  for_each_row(team, rows.count, [&](std::int64_t row, bool live) {
    const std::int64_t n = live ? rows.channels : 0;
    const std::int64_t first = row * rows.channels;
    const float center = live ? statistics.center(row, 0) : 0.0f;
    const float scale = live ? statistics.scale(row, 0) : 0.0f;
    const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
    const std::int64_t begin = static_cast<std::int64_t>(team.rank()) * W;
    GradientPack<T, Y, W> packs[kPacks];
    float sum = 0;
    float product = 0;
    if constexpr (held) {
#pragma unroll
      for (unsigned p = 0; p < kPacks; ++p) {
        if (begin + p * stride >= n) continue;
        packs[p].read(x + first, dy + first, weight, begin + p * stride, center, scale);
        packs[p].add_to(sum, product);
      }
    } else {
      for (std::int64_t c = begin; c < n; c += stride) {
        packs[0].read(x + first, dy + first, weight, c, center, scale);
        packs[0].add_to(sum, product);
      }
    }
    const float count = static_cast<float>(rows.channels);
    sum = team.sum(sum);
    const float through_mean = statistics.mean != nullptr ? sum / count : 0.0f;
    const float through_scale = team.sum(product) / count;
    if constexpr (held) {
#pragma unroll
      for (unsigned p = 0; p < kPacks; ++p) {
        if (begin + p * stride >= n) continue;
        packs[p].write(dx + first + begin + p * stride, scale, through_mean, through_scale);
      }
    } else {
      for (std::int64_t c = begin; c < n; c += stride) {
        packs[0].read(x + first, dy + first, weight, c, center, scale);
        packs[0].write(dx + first + c, scale, through_mean, through_scale);
      }
    }
  });
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
                const Tensor& mean, const Tensor& inv_std) {
  checks::layer_norm(x, weight, bias, y, mean, inv_std);
  if (inv_std.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const RowExtents rows{x.shape().rows(), x.shape().back()};
  const LayerNormParameters parameters{pointer_of(weight), pointer_of(bias), static_cast<float>(epsilon)};
  const Statistics statistics{mean.defined() ? out<float>(mean) : nullptr, out<float>(inv_std)};
  visit_channels(
      "layer_norm", x.dtype(), rows.channels,
      [&]<class T, int W>() {
        visit_row_result<T>(y, [&]<class Y>() {
          choose_row_kernel<W>(
              rows.count, rows.channels,
              [&]<class Team>(const RowGrid& grid, Team team) {
                layer_norm_held<T, Y, W, Team>
                    <<<grid.blocks, grid.threads, 0, stream>>>(in<T>(x), parameters, out<Y>(y), statistics, rows, team);
              },
              [&](const RowGrid& grid, WholeBlock team) {
                layer_norm_streamed<T, Y, W>
                    <<<grid.blocks, grid.threads, 0, stream>>>(in<T>(x), parameters, out<Y>(y), statistics, rows, team);
              });
        });
        check_launch("layer_norm");
      },
      x.data(), y.data(), pointer_of(weight), pointer_of(bias));
}

void layer_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& mean, const Tensor& inv_std,
                         const Tensor& dy, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  checks::layer_norm_backward(x, weight, mean, inv_std, dy, dx, dweight, dbias);
  const RowExtents rows{x.shape().rows(), x.shape().back()};
  if (rows.channels == 0) return;
  const Device device = x.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const RowStatistics statistics{pointer_of(mean), in<float>(inv_std)};
  void* const to = dx.defined() ? dx.data() : nullptr;
  visit_channels(
      "layer_norm_backward", x.dtype(), rows.channels,
      [&]<class T, int W>() {
        visit_row_result<T>(dy, [&]<class Y>() {
          if (dx.defined() && rows.count > 0) {
            choose_row_kernel<W>(
                rows.count, rows.channels,
                [&]<class Team>(const RowGrid& grid, Team team) {
                  layer_norm_dx<T, Y, W, Team, true><<<grid.blocks, grid.threads, 0, stream>>>(
                      in<T>(x), pointer_of(weight), statistics, in<Y>(dy), out<T>(dx), rows, team);
                },
                [&](const RowGrid& grid, WholeBlock team) {
                  layer_norm_dx<T, Y, W, WholeBlock, false><<<grid.blocks, grid.threads, 0, stream>>>(
                      in<T>(x), pointer_of(weight), statistics, in<Y>(dy), out<T>(dx), rows, team);
                });
            check_launch("layer_norm_backward");
          }
          if (!dweight.defined() && !dbias.defined()) return;
          const Tiling tiling = tile<W>(rows.channels);
          const Chunks chunks = cut(tiling, rows.count);
          const Tensor partials = Tensor::empty({chunks.count, 2, rows.channels}, DType::kFloat32, device);
          gradient_sums_of_chunks<T, Y, W>
              <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count)), tiling.threads, 0, stream>>>(
                  in<T>(x), in<Y>(dy), statistics, rows.channels, chunks, out<float>(partials));
          check_launch("layer_norm_backward, the parameters");
          launch_fold_gradient_sums(partials, rows.channels, dweight, dbias, stream);
        });
      },
      x.data(), dy.data(), to, pointer_of(weight));
}

}  // namespace lockstep::kernels::cuda
