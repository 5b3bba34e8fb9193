// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/values.cuh"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/upsampling.h"
#include "runtime/kernels/upsampling.h"

namespace lockstep::kernels::cuda {

namespace {

struct Axes {
  UpsampleAxis axes[3];
};

/// A pixel and the first of the W channels that a thread works on.
struct Place {
  std::int64_t image, i, j, k, channel;
};

/// The place of pack number `at` in [N, extents..., channels / W].
template <int W>
__device__ Place place_of(std::int64_t at, std::int64_t d1, std::int64_t d2, std::int64_t d0, std::int64_t channels) {
  Place place;
  const std::int64_t packs = channels / W;
  place.channel = at % packs * W;
  at /= packs;
  place.k = at % d2;
  at /= d2;
  place.j = at % d1;
  at /= d1;
  place.i = at % d0;
  place.image = at / d0;
  return place;
}

template <int W, class T>
__device__ void add(float (&sums)[W], const T* from, float weight) {
  const Values<T, W> values = load<W>(from);
#pragma unroll
  for (int w = 0; w < W; ++w) sums[w] += weight * to_float(values.values[w]);
}

template <int W, class T>
__device__ void write(const float (&sums)[W], T* to) {
  Values<T, W> result;
#pragma unroll
  for (int w = 0; w < W; ++w) result.values[w] = from_float<T>(sums[w]);
  store(result, to);
}

/// A thread an output pixel and W channels.
template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    upsample_kernel(const T* x, T* y, Axes of, std::int64_t packs, std::int64_t channels) {
  const UpsampleAxis &a = of.axes[0], &b = of.axes[1], &c = of.axes[2];
  for (std::int64_t at = first(); at < packs; at += step()) {
    const Place place = place_of<W>(at, b.out, c.out, a.out, channels);
    const UpsampleTap taps[3] = {a.tap(place.i), b.tap(place.j), c.tap(place.k)};
    float sums[W] = {};
    for (int corner = 0; corner < 8; ++corner) {
      std::int64_t pixel[3];
      double weight = 1;
      for (int d = 0; d < 3; ++d) {
        const bool second = (corner >> (2 - d) & 1) != 0;
        pixel[d] = second ? taps[d].second : taps[d].first;
        weight *= second ? taps[d].weight : 1 - taps[d].weight;
      }
      if (weight == 0) continue;
      const std::int64_t from = ((place.image * a.in + pixel[0]) * b.in + pixel[1]) * c.in + pixel[2];
      add(sums, x + from * channels + place.channel, static_cast<float>(weight));
    }
    write(sums, y + at * W);
  }
}

/// A thread an input pixel and W channels: it gathers from the output pixels that it has a part in, in their order.
template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    upsample_backward_kernel(const T* dy, T* dx, Axes of, std::int64_t packs, std::int64_t channels) {
  const UpsampleAxis &a = of.axes[0], &b = of.axes[1], &c = of.axes[2];
  for (std::int64_t at = first(); at < packs; at += step()) {
    const Place place = place_of<W>(at, b.in, c.in, a.in, channels);
    const std::int64_t first_j = b.first_use(place.j), end_j = b.end_of_use(place.j);
    const std::int64_t first_k = c.first_use(place.k), end_k = c.end_of_use(place.k);
    float sums[W] = {};
    for (std::int64_t i = a.first_use(place.i), end = a.end_of_use(place.i); i < end; ++i) {
      const double weight_i = a.part(place.i, i);
      for (std::int64_t j = first_j; j < end_j; ++j) {
        const double weight_ij = weight_i * b.part(place.j, j);
        for (std::int64_t k = first_k; k < end_k; ++k) {
          const double weight = weight_ij * c.part(place.k, k);
          if (weight == 0) continue;
          const std::int64_t from = ((place.image * a.out + i) * b.out + j) * c.out + k;
          add(sums, dy + from * channels + place.channel, static_cast<float>(weight));
        }
      }
    }
    write(sums, dx + at * W);
  }
}

Axes axes_on_device(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y) {
  const std::array<UpsampleAxis, 3> axes = axes_of(geometry, x.shape(), y.shape());
  return {{axes[0], axes[1], axes[2]}};
}

void upsample(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y) {
  checks::upsample(geometry, x, y);
  if (y.numel() == 0) return;
  const Device device = y.device();
  const gpu::DeviceGuard guard(device);
  const Axes axes = axes_on_device(geometry, x, y);
  const std::int64_t channels = y.shape().back();
  visit_channels(
      "upsample", x.dtype(), channels,
      [&]<class T, int W>() {
        const std::int64_t packs = y.numel() / W;
        upsample_kernel<T, W>
            <<<blocks_for(packs), kThreads, 0, gpu::current(device)>>>(in<T>(x), out<T>(y), axes, packs, channels);
        check_launch("upsample");
      },
      x.data(), y.data());
}

void upsample_backward(const UpsampleGeometry& geometry, const Tensor& dy, const Tensor& dx) {
  checks::upsample(geometry, dx, dy);
  if (dx.numel() == 0) return;
  const Device device = dx.device();
  const gpu::DeviceGuard guard(device);
  const Axes axes = axes_on_device(geometry, dx, dy);
  const std::int64_t channels = dx.shape().back();
  visit_channels(
      "upsample_backward", dx.dtype(), channels,
      [&]<class T, int W>() {
        const std::int64_t packs = dx.numel() / W;
        upsample_backward_kernel<T, W>
            <<<blocks_for(packs), kThreads, 0, gpu::current(device)>>>(in<T>(dy), out<T>(dx), axes, packs, channels);
        check_launch("upsample_backward");
      },
      dy.data(), dx.data());
}

}  // namespace

const Upsampling kUpsampling{.upsample = upsample, .upsample_backward = upsample_backward};

}  // namespace lockstep::kernels::cuda
