// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pooling.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/kernels/cpu/compiler.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/thread_buffers.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/window.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

/// The window of one image.
Window image_window(const PoolGeometry& geometry, const Shape& x, const Shape& y) {
  return {x.with(0, 1),     y.with(0, 1), geometry.spatial_rank, geometry.window, geometry.stride,
          geometry.padding, {1, 1, 1}};
}

/// Elements of one image.
std::int64_t image_numel(const Shape& shape) { return shape.numel() / shape.front(); }

/// Calls body(image, buffer) for each image of x, in parallel; buffer has `buffer_elements` of the running thread.
template <class Body>
void for_each_image(const Shape& x, std::int64_t buffer_elements, Body body) {
  const ThreadBuffers buffers(buffer_elements);
  parallel_ranges(x.front(), kGrainElements / image_numel(x), [&](std::int64_t begin, std::int64_t end) {
    float* const buffer = buffers.mine();
    for (std::int64_t image = begin; image < end; ++image) body(image, buffer);
  });
}

/// Elements of an image as float32: where they are, or widened into `buffer`.
const float* widened(Input in, std::int64_t n, float* buffer) {
  if (in.dtype == DType::kFloat32) return static_cast<const float*>(in.data);
  loops().convert(in, {buffer, DType::kFloat32}, n);
  return buffer;
}

/// Where to compute float32 results bound for `out`.
float* result_buffer(Output out, float* buffer) {
  return out.dtype == DType::kFloat32 ? static_cast<float*>(out.data) : buffer;
}

void store(const float* result, std::int64_t n, Output out) {
  if (out.dtype != DType::kFloat32) loops().convert({result, DType::kFloat32}, out, n);
}

void max_pool(const Window& window, std::int64_t channels, const float* x, float* y, std::int32_t* indices) {
  std::vector<std::int32_t> pixels;
  std::int64_t of = 0;
  const auto finish = [&] {
    loops().largest_pixels(x, pixels.data(), std::ssize(pixels), channels, y + of * channels, indices + of * channels);
    pixels.clear();
  };
  // The taps of an output pixel follow one another.
  window.for_each_tap([&](std::int64_t in_pixel, std::int64_t, std::int64_t out_pixel) {
    if (out_pixel != of) finish();
    of = out_pixel;
    pixels.push_back(static_cast<std::int32_t>(in_pixel));
  });
  finish();
}

/// The factor of each output pixel's sum in average pooling.
std::vector<float> average_factors(const PoolGeometry& geometry, const Window& window) {
  const auto pixels = static_cast<std::size_t>(Window::count(window.out));
  if (geometry.count_include_pad) return std::vector(pixels, 1.0f / static_cast<float>(Window::count(window.kernel)));
  std::vector<float> factors(pixels, 0.0f);
  window.for_each_tap([&](auto, auto, std::int64_t out_pixel) { factors[static_cast<std::size_t>(out_pixel)] += 1; });
  for (float& factor : factors) factor = 1.0f / factor;
  return factors;
}

void add_scaled(const float* in, float factor, std::int64_t n, float* out) {
  LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < n; ++i) out[i] += factor * in[i];
}

void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) {
  checks::pool_forward(geometry, x, y, indices);
  if (x.dtype() == DType::kFloat64) return reference::kPooling.pool_forward(geometry, x, y, indices);
  if (y.numel() == 0) return;
  const Window window = image_window(geometry, x.shape(), y.shape());
  const bool max = geometry.kind == PoolKind::kMax;
  const std::vector<float> factors = max ? std::vector<float>() : average_factors(geometry, window);
  const std::int64_t channels = x.shape().back();
  const std::int64_t in_numel = image_numel(x.shape());
  const std::int64_t out_numel = image_numel(y.shape());
  for_each_image(x.shape(), in_numel + out_numel, [&](std::int64_t image, float* buffer) {
    const Output out = output(y).from(image * out_numel);
    const float* const in = widened(input(x).from(image * in_numel), in_numel, buffer);
    float* const result = result_buffer(out, buffer + in_numel);
    if (max) {
      max_pool(window, channels, in, result, indices.mutable_as<std::int32_t>().data() + image * out_numel);
    } else {
      std::fill_n(result, out_numel, 0.0f);
      window.for_each_tap([&](std::int64_t in_pixel, std::int64_t, std::int64_t out_pixel) {
        add_scaled(in + in_pixel * channels, factors[static_cast<std::size_t>(out_pixel)], channels,
                   result + out_pixel * channels);
      });
    }
    store(result, out_numel, out);
  });
}

void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) {
  checks::pool_backward(geometry, dy, indices, dx);
  if (dx.dtype() == DType::kFloat64) return reference::kPooling.pool_backward(geometry, dy, indices, dx);
  if (dx.numel() == 0) return;
  const Window window = image_window(geometry, dx.shape(), dy.shape());
  const bool max = geometry.kind == PoolKind::kMax;
  const std::vector<float> factors = max ? std::vector<float>() : average_factors(geometry, window);
  const std::int64_t channels = dx.shape().back();
  const std::int64_t in_numel = image_numel(dx.shape());
  const std::int64_t out_numel = image_numel(dy.shape());
  for_each_image(dx.shape(), in_numel + out_numel, [&](std::int64_t image, float* buffer) {
    const Output out = output(dx).from(image * in_numel);
    const float* const slope = widened(input(dy).from(image * out_numel), out_numel, buffer + in_numel);
    float* const result = result_buffer(out, buffer);
    std::fill_n(result, in_numel, 0.0f);
    if (max) {
      const std::int32_t* const winners = indices.as<std::int32_t>().data() + image * out_numel;
      for (std::int64_t i = 0; i < out_numel; i += channels) {
        for (std::int64_t c = 0; c < channels; ++c) result[winners[i + c] * channels + c] += slope[i + c];
      }
    } else {
      window.for_each_tap([&](std::int64_t in_pixel, std::int64_t, std::int64_t out_pixel) {
        add_scaled(slope + out_pixel * channels, factors[static_cast<std::size_t>(out_pixel)], channels,
                   result + in_pixel * channels);
      });
    }
    store(result, in_numel, out);
  });
}

void global_average_pool(const Tensor& x, const Tensor& y) {
  checks::global_average_pool(x, y);
  if (x.dtype() == DType::kFloat64 || x.numel() == 0) return reference::kPooling.global_average_pool(x, y);
  const std::int64_t channels = x.shape().back();
  const std::int64_t pixels = image_numel(x.shape()) / channels;
  // Sums of sums: over all the pixels of a volume, float32 would lose what it adds.
  constexpr std::int64_t kChunk = 1024;
  for_each_image(x.shape(), 2 * channels, [&](std::int64_t image, float* sums) {
    float* const part = sums + channels;
    std::fill_n(sums, channels, 0.0f);
    for (std::int64_t begin = 0; begin < pixels; begin += kChunk) {
      const Input rows = input(x).from((image * pixels + begin) * channels);
      loops().sum_rows(rows, std::min(kChunk, pixels - begin), channels, part);
      add_scaled(part, 1.0f, channels, sums);
    }
    loops().scale({sums, DType::kFloat32}, 1.0f / static_cast<float>(pixels), output(y).from(image * channels),
                  channels);
  });
}

void global_average_pool_backward(const Tensor& dy, const Tensor& dx) {
  checks::global_average_pool(dx, dy);
  if (dx.dtype() == DType::kFloat64 || dx.numel() == 0) return reference::kPooling.global_average_pool_backward(dy, dx);
  const std::int64_t channels = dx.shape().back();
  const std::int64_t pixels = image_numel(dx.shape()) / channels;
  const std::size_t row_bytes = static_cast<std::size_t>(channels) * size_of(dx.dtype());
  for_each_image(dx.shape(), 0, [&](std::int64_t image, float*) {
    const Output first = output(dx).from(image * pixels * channels);
    loops().scale(input(dy).from(image * channels), 1.0f / static_cast<float>(pixels), first, channels);
    for (std::int64_t pixel = 1; pixel < pixels; ++pixel) {
      std::memcpy(first.from(pixel * channels).data, first.data, row_bytes);
    }
  });
}

}  // namespace

const Pooling kPooling{.pool_forward = pool_forward,
                       .pool_backward = pool_backward,
                       .global_average_pool = global_average_pool,
                       .global_average_pool_backward = global_average_pool_backward};

}  // namespace lockstep::kernels::cpu
