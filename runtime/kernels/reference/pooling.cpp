// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pooling.h"

#include <algorithm>
#include <cmath>

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/window.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

Window window_of(const PoolGeometry& geometry, const Shape& x, const Shape& y) {
  return {x, y, geometry.spatial_rank, geometry.window, geometry.stride, geometry.padding, {1, 1, 1}};
}

/// The divisor of each output pixel of average pooling.
Values divisors(const PoolGeometry& geometry, const Window& window) {
  const auto out_pixels = static_cast<std::size_t>(window.images * Window::count(window.out));
  // Extents are rounded down, so every window lies inside the padded image.
  if (geometry.count_include_pad) return Values(out_pixels, static_cast<double>(Window::count(window.kernel)));
  Values counts(out_pixels, 0.0);
  window.for_each_tap(
      [&](std::int64_t, std::int64_t, std::int64_t out_pixel) { counts[static_cast<std::size_t>(out_pixel)] += 1; });
  return counts;
}

/// Calls pair(x index, y index, divisor) for every element of x and every window that averages over it.
template <class Pair>
void for_each_average(const PoolGeometry& geometry, const Shape& x, const Shape& y, Pair pair) {
  const Window window = window_of(geometry, x, y);
  const Values divisor = divisors(geometry, window);
  const auto channels = static_cast<std::size_t>(x.back());
  window.for_each_tap([&](std::int64_t in_pixel, std::int64_t, std::int64_t out_pixel) {
    const auto in = static_cast<std::size_t>(in_pixel);
    const auto out = static_cast<std::size_t>(out_pixel);
    for (std::size_t c = 0; c < channels; ++c) pair(in * channels + c, out * channels + c, divisor[out]);
  });
}

void max_pool(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) {
  const Window window = window_of(geometry, x.shape(), y.shape());
  const auto channels = static_cast<std::size_t>(x.shape().back());
  const Values input = load(x);
  Values maxima(static_cast<std::size_t>(y.numel()), 0.0);
  const std::span<std::int32_t> winners = indices.mutable_as<std::int32_t>();
  std::ranges::fill(winners, -1);
  window.for_each_tap([&](std::int64_t in_pixel, std::int64_t, std::int64_t out_pixel) {
    for (std::size_t c = 0; c < channels; ++c) {
      const double value = input[static_cast<std::size_t>(in_pixel) * channels + c];
      const std::size_t out = static_cast<std::size_t>(out_pixel) * channels + c;
      const bool first = winners[out] < 0;
      if (first || (!std::isnan(maxima[out]) && !(value <= maxima[out]))) {
        maxima[out] = value;
        winners[out] = static_cast<std::int32_t>(in_pixel % Window::count(window.in));
      }
    }
  });
  store(maxima, y);
}

/// Spatial pixels of one image of [N, spatial..., C].
std::size_t pixels_of(const Shape& x) {
  std::int64_t pixels = 1;
  for (int d = 1; d + 1 < x.rank(); ++d) pixels *= x[d];
  return static_cast<std::size_t>(pixels);
}

/// Calls pair(x index, y index) for every element of x and the mean it counts in.
template <class Pair>
void for_each_global(const Shape& x, Pair pair) {
  const auto count = static_cast<std::size_t>(x.numel());
  const auto channels = static_cast<std::size_t>(x.back());
  const std::size_t image = pixels_of(x) * channels;
  for (std::size_t i = 0; i < count; ++i) pair(i, i / image * channels + i % channels);
}

void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) {
  checks::pool_forward(geometry, x, y, indices);
  if (geometry.kind == PoolKind::kMax) return max_pool(geometry, x, y, indices);
  const Values input = load(x);
  Values output(static_cast<std::size_t>(y.numel()), 0.0);
  for_each_average(geometry, x.shape(), y.shape(),
                   [&](std::size_t in, std::size_t out, double divisor) { output[out] += input[in] / divisor; });
  store(output, y);
}

void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) {
  checks::pool_backward(geometry, dy, indices, dx);
  const Values gradient = load(dy);
  Values sums(static_cast<std::size_t>(dx.numel()), 0.0);
  if (geometry.kind == PoolKind::kAverage) {
    for_each_average(geometry, dx.shape(), dy.shape(),
                     [&](std::size_t in, std::size_t out, double divisor) { sums[in] += gradient[out] / divisor; });
  } else {
    const std::span<const std::int32_t> winners = indices.as<std::int32_t>();
    const auto channels = static_cast<std::size_t>(dx.shape().back());
    const std::size_t in_pixels = pixels_of(dx.shape());
    const std::size_t out_pixels = pixels_of(dy.shape());
    for (std::size_t out = 0; out < gradient.size(); ++out) {
      const std::size_t image = out / channels / out_pixels;
      const std::size_t in_pixel = image * in_pixels + static_cast<std::size_t>(winners[out]);
      sums[in_pixel * channels + out % channels] += gradient[out];
    }
  }
  store(sums, dx);
}

void global_average_pool(const Tensor& x, const Tensor& y) {
  checks::global_average_pool(x, y);
  const Values input = load(x);
  const auto pixels = static_cast<double>(pixels_of(x.shape()));
  Values means(static_cast<std::size_t>(y.numel()), 0.0);
  for_each_global(x.shape(), [&](std::size_t in, std::size_t out) { means[out] += input[in] / pixels; });
  store(means, y);
}

void global_average_pool_backward(const Tensor& dy, const Tensor& dx) {
  checks::global_average_pool(dx, dy);
  const Values gradient = load(dy);
  const auto pixels = static_cast<double>(pixels_of(dx.shape()));
  Values spread(static_cast<std::size_t>(dx.numel()), 0.0);
  for_each_global(dx.shape(), [&](std::size_t in, std::size_t out) { spread[in] = gradient[out] / pixels; });
  store(spread, dx);
}

}  // namespace

const Pooling kPooling{.pool_forward = pool_forward,
                       .pool_backward = pool_backward,
                       .global_average_pool = global_average_pool,
                       .global_average_pool_backward = global_average_pool_backward};

}  // namespace lockstep::kernels::reference
