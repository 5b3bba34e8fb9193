// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/conv_direct.h"
#include "runtime/kernels/cuda/launch.cuh"

namespace lockstep::kernels::cuda {

namespace {

/// A row-major index into [rows, extents..., channels], taken apart.
struct VoxelPlace {
  __device__ VoxelPlace(std::int64_t index, const std::array<std::int64_t, 3>& extents, std::int64_t channels) {
    channel = index % channels;
    index /= channels;
    for (int d = 2; d >= 0; --d) {
      at[d] = index % extents[d];
      index /= extents[d];
    }
    row = index;
  }

  std::int64_t row;
  std::int64_t at[3];
  std::int64_t channel;
};

/// The element of [rows, extents..., channels] at a place whose channel is 0.
__device__ std::int64_t offset(std::int64_t row, const std::int64_t (&at)[3],
                               const std::array<std::int64_t, 3>& extents, std::int64_t channels) {
  return (((row * extents[0] + at[0]) * extents[1] + at[1]) * extents[2] + at[2]) * channels;
}

/// Calls f(kernel position) for every position of the window, in ascending order.
template <class F>
__device__ void for_window(const ConvProblem& p, F&& f) {
  std::int64_t k[3];
  for (k[0] = 0; k[0] < p.kernel[0]; ++k[0]) {
    for (k[1] = 0; k[1] < p.kernel[1]; ++k[1]) {
      for (k[2] = 0; k[2] < p.kernel[2]; ++k[2]) f(k);
    }
  }
}

/// Finds the place in x under position k of the window at `out`; false in the padding.
__device__ bool input_place(const ConvProblem& p, const std::int64_t (&out)[3], const std::int64_t (&k)[3],
                            std::int64_t (&in)[3]) {
  bool inside = true;
  for (int d = 0; d < 3; ++d) {
    in[d] = out[d] * p.stride[d] - p.padding[d] + k[d] * p.dilation[d];
    inside = inside && in[d] >= 0 && in[d] < p.in[d];
  }
  return inside;
}

/// Finds the place in y of the window whose position k lies at `in`; false where there is none.
__device__ bool output_place(const ConvProblem& p, const std::int64_t (&in)[3], const std::int64_t (&k)[3],
                             std::int64_t (&out)[3]) {
  bool inside = true;
  for (int d = 0; d < 3; ++d) {
    const std::int64_t begin = in[d] + p.padding[d] - k[d] * p.dilation[d];
    out[d] = begin / p.stride[d];
    inside = inside && begin >= 0 && begin % p.stride[d] == 0 && out[d] < p.out[d];
  }
  return inside;
}

/// An element of y a thread: reads 2 sizeof(T) a multiplication, and leaves it to the caches to make that less.
template <class T>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(ConvProblem p, std::int64_t n, const T* x, const T* weight, const T* bias, T* y) {
  const std::int64_t depth = p.channels / p.groups;
  const std::int64_t group_outputs = p.outputs / p.groups;
  for (std::int64_t i = first(); i < n; i += step()) {
    const VoxelPlace to(i, p.out, p.outputs);
    float sum = 0;
    for_window(p, [&](const std::int64_t(&k)[3]) {
      std::int64_t in[3];
      if (!input_place(p, to.at, k, in)) return;
      const T* values = x + offset(to.row, in, p.in, p.channels) + to.channel / group_outputs * depth;
      const T* weights = weight + offset(to.channel, k, p.kernel, depth);
      for (std::int64_t c = 0; c < depth; ++c) sum += to_float(values[c]) * to_float(weights[c]);
    });
    if (bias != nullptr) sum += to_float(bias[to.channel]);
    y[i] = from_float<T>(sum);
  }
}

/// An element of dx a thread: reads 2 sizeof(T) a multiplication.
template <class T>
__global__ void __launch_bounds__(kThreads)
    data_kernel(ConvProblem p, std::int64_t n, const T* dy, const T* weight, T* dx) {
  const std::int64_t depth = p.channels / p.groups;
  const std::int64_t group_outputs = p.outputs / p.groups;
  for (std::int64_t i = first(); i < n; i += step()) {
    const VoxelPlace to(i, p.in, p.channels);
    const std::int64_t begin = to.channel / depth * group_outputs;
    float sum = 0;
    for_window(p, [&](const std::int64_t(&k)[3]) {
      std::int64_t out[3];
      if (!output_place(p, to.at, k, out)) return;
      const T* slopes = dy + offset(to.row, out, p.out, p.outputs);
      for (std::int64_t o = begin; o < begin + group_outputs; ++o) {
        sum += to_float(slopes[o]) * to_float(weight[offset(o, k, p.kernel, depth) + to.channel % depth]);
      }
    });
    dx[i] = from_float<T>(sum);
  }
}

/// An element of dweight a warp, whose lanes share the places of y: reads 2 sizeof(T) a multiplication. The lanes' sums
/// are added in a tree, so the order is always the same.
template <class T>
__global__ void __launch_bounds__(kThreads)
    weights_kernel(ConvProblem p, std::int64_t n, const T* x, const T* dy, float* dweight) {
  const std::int64_t depth = p.channels / p.groups;
  const std::int64_t group_outputs = p.outputs / p.groups;
  const std::int64_t places = p.images * p.out[0] * p.out[1] * p.out[2];
  const std::int64_t lane = threadIdx.x % kWarp;
  for (std::int64_t i = first() / kWarp; i < n; i += step() / kWarp) {
    const VoxelPlace to(i, p.kernel, depth);
    const std::int64_t channel = to.row / group_outputs * depth + to.channel;
    float sum = 0;
    for (std::int64_t place = lane; place < places; place += kWarp) {
      const VoxelPlace from(place, p.out, 1);
      std::int64_t in[3];
      if (!input_place(p, from.at, to.at, in)) continue;
      sum += to_float(x[offset(from.row, in, p.in, p.channels) + channel]) * to_float(dy[place * p.outputs + to.row]);
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
    if (lane == 0) dweight[i] = sum;
  }
}

std::int64_t volume(const std::array<std::int64_t, 3>& extents) { return extents[0] * extents[1] * extents[2]; }

}  // namespace

void conv_direct(const ConvProblem& p, const ConvData& data, cudaStream_t stream) {
  visit_floating("conv", p.dtype, [&]<class T>() {
    const auto* a = static_cast<const T*>(data.first);
    const auto* b = static_cast<const T*>(data.second);
    if (p.pass == ConvPass::kForward) {
      const std::int64_t n = p.images * volume(p.out) * p.outputs;
      forward_kernel<T><<<blocks_for(n), kThreads, 0, stream>>>(p, n, a, b, static_cast<const T*>(data.bias),
                                                                static_cast<T*>(data.result));
    } else if (p.pass == ConvPass::kData) {
      const std::int64_t n = p.images * volume(p.in) * p.channels;
      data_kernel<T><<<blocks_for(n), kThreads, 0, stream>>>(p, n, a, b, static_cast<T*>(data.result));
    } else {
      const std::int64_t n = p.outputs * volume(p.kernel) * (p.channels / p.groups);
      weights_kernel<T>
          <<<blocks_for(n, kThreads / kWarp), kThreads, 0, stream>>>(p, n, a, b, static_cast<float*>(data.result));
    }
  });
  check_launch("conv_direct");
}

}  // namespace lockstep::kernels::cuda
