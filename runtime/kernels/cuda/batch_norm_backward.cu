// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"
#include "runtime/kernels/cuda/batch_norm_value.cuh"
#include "runtime/kernels/cuda/normalization_sums.cuh"
#include "runtime/kernels/cuda/occupancy.h"
#include "runtime/kernels/functors/activation.h"
#include "runtime/kernels/functors/batch_norm.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// Rows that a thread loads before it uses the first: two or three accesses each.
constexpr int kGradientRows = 2;

/// Where relu's mask comes from.
enum class Mask : std::uint8_t {
  kNone,
  kRead,      ///< read from y
  kComputed,  ///< computed from x, as batch_norm_apply() has computed y
};

/// The gradient that the first pass writes beside its sums.
enum class Written : std::uint8_t {
  kNothing,
  kMasked,  ///< dy behind the mask
  kSum,     ///< dy + addend behind the mask
};

/// Blocks of the two passes on a multiprocessor: fewer where what they read and write takes registers, which would else
/// be spilled.
template <Mask mask, Written written>
constexpr int kReduceBlocksOnEach = written != Written::kNothing ? 2
                                    : mask == Mask::kNone        ? 4
                                                                 : 3;
template <Mask mask>
constexpr int kApplyBlocksOnEach = mask == Mask::kNone ? 3 : 2;

/// The parameters from which y is computed again, beside x and its mean.
struct MaskParameters {
  const float* inv_std;
  const float* gamma;
  const float* beta;
};

/// The mask parameters of W channels; empty where the mask is not computed.
template <int W, Mask mask>
struct ChannelMask {
  __device__ ChannelMask(const MaskParameters&, std::int64_t) {}
};
template <int W>
struct ChannelMask<W, Mask::kComputed> {
  float scale[W];
  float shift[W];

  __device__ ChannelMask(const MaskParameters& of, std::int64_t channel) {
#pragma unroll
    for (int w = 0; w < W; ++w) {
      scale[w] = of.inv_std[channel + w] * of.gamma[channel + w];
      shift[w] = of.beta[channel + w];
    }
  }
};

/// The tensors that the passes read. The first pass may overwrite dy or the addend.
template <class T>
struct Sources {
  const T* x;
  const T* dy;
  const T* addend;
  const T* y;
};

/// W channels of the sources: x and dy, the addend where the gradient is a sum, and y where the mask is read.
template <class T, int W, Mask mask, Written written = Written::kNothing>
struct Gradients {
  Values<T, W> x;
  Values<T, W> dy;
  Values<T, W> addend;
  Values<T, W> y;

  __device__ void read(const Sources<T>& from, std::int64_t at) {
    x = load<W>(from.x + at);
    dy = load<W>(from.dy + at);
    if constexpr (written == Written::kSum) addend = load<W>(from.addend + at);
    if constexpr (mask == Mask::kRead) y = load<W>(from.y + at);
  }
  __device__ float x_at(int w) const { return to_float(x.values[w]); }
  __device__ float dy_at(int w, float mean, const ChannelMask<W, mask>& of) const {
    float d = to_float(dy.values[w]);
    if constexpr (written == Written::kSum) d = to_float(from_float<T>(d + to_float(addend.values[w])));
    if constexpr (mask == Mask::kRead) return Relu::backward(to_float(y.values[w]), d);
    if constexpr (mask == Mask::kComputed) {
      const T value = from_float<T>(normalized(x_at(w), mean, of.scale[w], of.shift[w]));
      return Relu::backward(to_float(value), d);
    }
    return d;
  }
};

struct GradientSums {
  float dy = 0;
  float dy_xmu = 0;
};

/// partials [chunks, 2, channels]: both sums over each chunk's rows. Moves 4 bytes an element of 16-bit types and 8 of
/// float32, and half as many again for each of an addend, a mask that is read, and `masked`, which may be dy or the
/// addend: a thread has read what it overwrites.
template <class T, int W, Mask mask, Written written>
__global__ void __launch_bounds__(kThreads, kReduceBlocksOnEach<mask, written>)
    sums_of_chunks(Sources<T> from, const float* mean, MaskParameters parameters, T* masked, std::int64_t channels,
                   Chunks chunks, float* partials) {
  __shared__ GradientSums shared[W][kThreads];
  const std::int64_t channel = first_channel<W>();
  const std::int64_t end = chunks.end(blockIdx.y);
  const std::int64_t lines = blockDim.y;
  GradientSums sums[W];
  if (channel < channels) {
    float center[W];
#pragma unroll
    for (int w = 0; w < W; ++w) center[w] = mean[channel + w];
    const ChannelMask<W, mask> of(parameters, channel);
    for (std::int64_t begin = chunks.begin(blockIdx.y) + threadIdx.y; begin < end; begin += kGradientRows * lines) {
      Gradients<T, W, mask, written> batch[kGradientRows];
#pragma unroll
      for (int b = 0; b < kGradientRows; ++b) {
        const std::int64_t row = begin + b * lines;
        if (row < end) batch[b].read(from, row * channels + channel);
      }
#pragma unroll
      for (int b = 0; b < kGradientRows; ++b) {
        const std::int64_t row = begin + b * lines;
        if (row >= end) continue;
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const float d = batch[b].dy_at(w, center[w], of);
          sums[w].dy += d;
          sums[w].dy_xmu += d * (batch[b].x_at(w) - center[w]);
          if constexpr (written != Written::kNothing) batch[b].dy.values[w] = from_float<T>(d);
        }
        if constexpr (written != Written::kNothing) store(batch[b].dy, masked + row * channels + channel);
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

struct BackwardParameters {
  const float* mean;
  const float* inv_std;
  const float* gamma;
  const float* sum_dy;
  const float* sum_dy_xmu;
  const float* count;  ///< null: the statistics are constants
  MaskParameters mask;
};

/// Moves 6 bytes an element of 16-bit types and 12 of float32, a third as many more with a mask that is read.
template <class T, int W, Mask mask>
__global__ void __launch_bounds__(kThreads, kApplyBlocksOnEach<mask>)
    backward_apply(Sources<T> from, BackwardParameters parameters, T* dx, std::int64_t rows, std::int64_t channels) {
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
  const ChannelMask<W, mask> of(parameters.mask, channel);
  const std::int64_t lines = blockDim.y;
  const std::int64_t stride = gridDim.y * kGradientRows * lines;
  for (std::int64_t begin = blockIdx.y * kGradientRows * lines + threadIdx.y; begin < rows; begin += stride) {
    Gradients<T, W, mask> batch[kGradientRows];
#pragma unroll
    for (int b = 0; b < kGradientRows; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row < rows) batch[b].read(from, row * channels + channel);
    }
#pragma unroll
    for (int b = 0; b < kGradientRows; ++b) {
      const std::int64_t row = begin + b * lines;
      if (row >= rows) continue;
      Values<T, W> gradient;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const float d = batch[b].dy_at(w, mean[w], of);
        gradient.values[w] =
            from_float<T>(batch_norm_backward(batch[b].x_at(w), d, mean[w], scale[w], mean_dy[w], slope[w]));
      }
      store(gradient, dx + row * channels + channel);
    }
  }
}

/// A parameter's gradient, of any floating dtype; null: nobody wants it.
struct ParameterGradient {
  void* to;
  DType dtype;
  bool accumulate;

  ParameterGradient(const Tensor& gradient, bool adds)
      : to(gradient.defined() ? gradient.data() : nullptr),
        dtype(gradient.defined() ? gradient.dtype() : DType::kFloat32),
        accumulate(adds) {}

  __device__ void put(std::int64_t at, float value) const {
    if (to == nullptr) return;
    if (dtype == DType::kFloat16) return put_as<Half>(at, value);
    if (dtype == DType::kBFloat16) return put_as<BFloat16>(at, value);
    put_as<float>(at, value);
  }

 private:
  template <class T>
  __device__ void put_as(std::int64_t at, float value) const {
    T* const element = static_cast<T*>(to) + at;
    *element = from_float<T>(accumulate ? to_float(*element) + value : value);
  }
};

/// The chunks' sums added up, and the parameters' gradients, which follow from them.
__global__ void __launch_bounds__(kFoldLanes* kFoldLines)
    fold_sums(const float* partials, std::int64_t channels, std::int64_t count, float* sum_dy, float* sum_dy_xmu,
              const float* inv_std, ParameterGradient dgamma, ParameterGradient dbeta) {
  const std::int64_t channel = first_channel<1>();
  const bool live = channel < channels;
  const auto [sum, product] = fold_partials(partials, channels, count, channel, live);
  if (threadIdx.y != 0 || !live) return;
  const float of_dy = static_cast<float>(sum);
  const float of_products = static_cast<float>(product);
  sum_dy[channel] = of_dy;
  sum_dy_xmu[channel] = of_products;
  dbeta.put(channel, of_dy);
  if (dgamma.to != nullptr) dgamma.put(channel, __fmul_rn(of_products, inv_std[channel]));
}

/// Calls f.template operator()<mask>().
template <class F>
void visit_mask(const BatchNormMask& mask, F&& f) {
  if (!mask.y.defined()) return f.template operator()<Mask::kNone>();
  if (mask.beta.defined()) return f.template operator()<Mask::kComputed>();
  f.template operator()<Mask::kRead>();
}

/// Calls f.template operator()<mask, written>().
template <class F>
void visit_gradient(const BatchNormMask& mask, const BatchNormGradient& gradient, F&& f) {
  visit_mask(mask, [&]<Mask kind>() {
    if (gradient.addend.defined()) return f.template operator()<kind, Written::kSum>();
    if (gradient.masked.defined()) return f.template operator()<kind, Written::kMasked>();
    f.template operator()<kind, Written::kNothing>();
  });
}

void* data_of(const Tensor& tensor) { return tensor.defined() ? tensor.data() : nullptr; }

MaskParameters parameters_of(const BatchNormMask& mask) {
  return {pointer_of(mask.inv_std), pointer_of(mask.gamma), pointer_of(mask.beta)};
}

}  // namespace

void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const BatchNormGradient& gradient,
                                const BatchNormMask& mask, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                const BatchNormParameterGradients& gradients) {
  checks::batch_norm_backward_reduce(x, mean, gradient, mask, sum_dy, sum_dy_xmu, gradients);
  const std::int64_t channels = mean.numel();
  if (channels == 0) return;
  const Device device = sum_dy.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const void* const output = data_of(mask.y);
  const void* const addend = data_of(gradient.addend);
  void* const masked = data_of(gradient.masked);
  visit_channels(
      "batch_norm_backward_reduce", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        visit_gradient(mask, gradient, [&]<Mask kind, Written written>() {
          // One way to cut, and so one order of the sums, whichever gradient is written: blocks that are computed again
          // mask what plain ones add up.
          constexpr Written cut_for = written == Written::kNothing ? written : Written::kSum;
          const void* const kernel = reinterpret_cast<const void*>(&sums_of_chunks<T, W, kind, cut_for>);
          const Chunks chunks = cut(tiling, x.shape().rows(), resident_blocks(device, kernel, tiling.block()));
          const Tensor partials = Tensor::empty({chunks.count, 2, channels}, DType::kFloat32, device);
          sums_of_chunks<T, W, kind, written>
              <<<dim3(tiling.tiles, static_cast<unsigned>(chunks.count)), tiling.threads, 0, stream>>>(
                  Sources<T>{in<T>(x), in<T>(gradient.dy), static_cast<const T*>(addend),
                             static_cast<const T*>(output)},
                  in<float>(mean), parameters_of(mask), static_cast<T*>(masked), channels, chunks,
                  out<float>(partials));
          check_launch("batch_norm_backward_reduce");
          fold_sums<<<fold_blocks(channels), dim3(kFoldLanes, kFoldLines), 0, stream>>>(
              in<float>(partials), channels, chunks.count, out<float>(sum_dy), out<float>(sum_dy_xmu),
              pointer_of(gradients.inv_std), ParameterGradient(gradients.dgamma, gradients.accumulate_dgamma),
              ParameterGradient(gradients.dbeta, gradients.accumulate_dbeta));
          check_launch("batch_norm_backward_reduce, the chunks added up");
        });
      },
      x.data(), gradient.dy.data(), output, addend, static_cast<const void*>(masked));
}

void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                               const Tensor& dy, const BatchNormMask& mask, const Tensor& sum_dy,
                               const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx) {
  checks::batch_norm_backward_apply(x, mean, inv_std, gamma, dy, mask, sum_dy, sum_dy_xmu, count, dx);
  if (x.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t rows = x.shape().rows();
  const std::int64_t channels = mean.numel();
  const bool of_batch = count.defined();
  const BackwardParameters parameters{in<float>(mean),
                                      in<float>(inv_std),
                                      in<float>(gamma),
                                      of_batch ? in<float>(sum_dy) : nullptr,
                                      of_batch ? in<float>(sum_dy_xmu) : nullptr,
                                      of_batch ? in<float>(count) : nullptr,
                                      parameters_of(mask)};
  const void* const output = data_of(mask.y);
  visit_channels(
      "batch_norm_backward_apply", x.dtype(), channels,
      [&]<class T, int W>() {
        const Tiling tiling = tile<W>(channels);
        visit_mask(mask, [&]<Mask kind>() {
          const void* const kernel = reinterpret_cast<const void*>(&backward_apply<T, W, kind>);
          const dim3 grid =
              grid_over_rows(tiling, rows, kGradientRows, resident_blocks(device, kernel, tiling.block()));
          backward_apply<T, W, kind><<<grid, tiling.threads, 0, gpu::current(device)>>>(
              Sources<T>{in<T>(x), in<T>(dy), nullptr, static_cast<const T*>(output)}, parameters, out<T>(dx), rows,
              channels);
        });
        check_launch("batch_norm_backward_apply");
      },
      x.data(), dy.data(), output, dx.data());
}

}  // namespace lockstep::kernels::cuda
