// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/upsampling.h"

#include <algorithm>
#include <vector>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/fast_dtypes.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/thread_buffers.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/upsampling.h"
#include "runtime/kernels/reference/families.h"

namespace lockstep::kernels::cpu {

namespace {

/// The source pixels, and their weights, of each pixel along one dimension. A gradient's taps are the transpose of the
/// image's.
struct Taps {
  std::vector<std::int32_t> begin{0};
  std::vector<std::int32_t> pixel;
  std::vector<float> weight;

  void add(std::int64_t from, double part) {
    if (part == 0) return;
    pixel.push_back(static_cast<std::int32_t>(from));
    weight.push_back(static_cast<float>(part));
  }
  void end_pixel() { begin.push_back(static_cast<std::int32_t>(pixel.size())); }

  std::int64_t pixels() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  PixelTaps view() const { return {begin.data(), pixel.data(), weight.data()}; }
  template <class F>
  void for_each(std::int64_t at, F f) const {
    const auto i = static_cast<std::size_t>(at);
    for (auto k = static_cast<std::size_t>(begin[i]); k < static_cast<std::size_t>(begin[i + 1]); ++k) {
      f(static_cast<std::int64_t>(pixel[k]), weight[k]);
    }
  }
};

Taps taps_of(const UpsampleAxis& axis) {
  Taps taps;
  for (std::int64_t at = 0; at < axis.out; ++at) {
    const UpsampleTap tap = axis.tap(at);
    if (tap.first == tap.second) {
      taps.add(tap.first, 1.0);
    } else {
      taps.add(tap.first, 1 - tap.weight);
      taps.add(tap.second, tap.weight);
    }
    taps.end_pixel();
  }
  return taps;
}

Taps transposed(const UpsampleAxis& axis) {
  Taps taps;
  for (std::int64_t pixel = 0; pixel < axis.in; ++pixel) {
    for (std::int64_t at = axis.first_use(pixel); at < axis.end_of_use(pixel); ++at) taps.add(at, axis.part(pixel, at));
    taps.end_pixel();
  }
  return taps;
}

/// A row of an image: one pixel of the two outer dimensions, and the rows that it is made of.
struct RowSources {
  std::vector<Input> rows;
  std::vector<float> weights;
};

/// out [N, spatial'..., C] from in [N, spatial..., C], along the last spatial dimension within rows that are weighted
/// sums of in's rows. Each row is one thread's, and rounded once.
void resample(const std::array<Taps, 3>& taps, const std::array<std::int64_t, 3>& in_extents, const Tensor& in,
              const Tensor& out) {
  const std::int64_t channels = in.shape().back();
  const std::int64_t in_row = in_extents[2] * channels, out_row = taps[2].pixels() * channels;
  const std::int64_t out_rows = taps[0].pixels() * taps[1].pixels();
  const ThreadBuffers buffers(in_row + out_row);
  const bool copies = std::ranges::all_of(taps, [](const Taps& of) {
    return std::ranges::all_of(of.weight, [](float weight) { return weight == 1.0f; }) &&
           of.pixels() == static_cast<std::int64_t>(of.pixel.size());
  });
  const auto pixel_bytes = channels * static_cast<std::int64_t>(size_of(in.dtype()));
  parallel_rows(in.size(0) * out_rows, out_row, [&](std::int64_t first, std::int64_t count) {
    RowSources sources;
    float* const blended = buffers.mine();
    for (std::int64_t row = first; row < first + count; ++row) {
      const std::int64_t image = row / out_rows, i = row % out_rows / taps[1].pixels(), j = row % taps[1].pixels();
      sources.rows.clear();
      sources.weights.clear();
      taps[0].for_each(i, [&](std::int64_t a, float weight_a) {
        taps[1].for_each(j, [&](std::int64_t b, float weight_b) {
          const std::int64_t in_line = (image * in_extents[0] + a) * in_extents[1] + b;
          sources.rows.push_back(input(in).from(in_line * in_row));
          sources.weights.push_back(weight_a * weight_b);
        });
      });
      const Output to = output(out).from(row * out_row);
      if (copies) {
        loops().pick_pixels(sources.rows.front().data, taps[2].pixel.data(), pixel_bytes, taps[2].pixels(), to.data);
        continue;
      }
      const bool as_it_lies =
          sources.rows.size() == 1 && sources.weights.front() == 1.0f && in.dtype() == DType::kFloat32;
      if (!as_it_lies) {
        loops().weighted_sum(sources.rows.data(), sources.weights.data(),
                             static_cast<std::int64_t>(sources.rows.size()), blended, in_row);
      }
      const float* const from = as_it_lies ? static_cast<const float*>(sources.rows.front().data) : blended;
      const bool in_place = out.dtype() == DType::kFloat32;
      float* const result = in_place ? static_cast<float*>(to.data) : blended + in_row;
      loops().resample_pixels(from, taps[2].view(), taps[2].pixels(), channels, result);
      if (!in_place) loops().convert({result, DType::kFloat32}, to, out_row);
    }
  });
}

void upsample(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y) {
  checks::upsample(geometry, x, y);
  if (!is_fast(x) || y.numel() == 0) return reference::kUpsampling.upsample(geometry, x, y);
  const std::array<UpsampleAxis, 3> axes = axes_of(geometry, x.shape(), y.shape());
  resample({taps_of(axes[0]), taps_of(axes[1]), taps_of(axes[2])}, {axes[0].in, axes[1].in, axes[2].in}, x, y);
}

void upsample_backward(const UpsampleGeometry& geometry, const Tensor& dy, const Tensor& dx) {
  checks::upsample(geometry, dx, dy);
  if (!is_fast(dx) || dx.numel() == 0) return reference::kUpsampling.upsample_backward(geometry, dy, dx);
  const std::array<UpsampleAxis, 3> axes = axes_of(geometry, dx.shape(), dy.shape());
  resample({transposed(axes[0]), transposed(axes[1]), transposed(axes[2])}, {axes[0].out, axes[1].out, axes[2].out}, dy,
           dx);
}

}  // namespace

const Upsampling kUpsampling{.upsample = upsample, .upsample_backward = upsample_backward};

}  // namespace lockstep::kernels::cpu
