// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/conv_products.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/kernels/assign.h"
#include "runtime/kernels/cpu/conv_patches.h"
#include "runtime/kernels/cpu/conv_phases.h"
#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/parallel.h"
#include "runtime/kernels/cpu/widen.h"
#include "runtime/kernels/matmul.h"

namespace lockstep::kernels::cpu {

namespace {

/// As a matrix with this many columns.
Tensor matrix(const Tensor& tensor, std::int64_t columns) {
  return tensor.detach(Shape{tensor.numel() / columns, columns});
}

/// Calls run(Element()) with a type of the size of the dtype's elements.
template <class Run>
void with_element(DType dtype, Run run) {
  if (dtype == DType::kFloat32) return run(float{});
  run(std::uint16_t{});
}

/// The patches of all images, as [pixels of `to`, taps * channels].
template <template <class> class Patches>
Tensor gathered(const ConvExtents& extents, const Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  const Tensor patches = Tensor::empty({rows, columns}, tensor.dtype());
  with_element(tensor.dtype(), [&](auto element) {
    using Element = decltype(element);
    const Patches<Element> from(extents, tensor, 0);
    parallel_rows(rows, columns, [&](std::int64_t first, std::int64_t n) {
      from.lines(first, n, static_cast<Element*>(patches.data()) + first * columns);
    });
  });
  return patches;
}

/// Whether the patches of x are x, and those of y are y.
bool is_pointwise(const ConvExtents& e) {
  const Window& w = e.window;
  return e.taps == 1 && w.in == w.out && Window::count(w.stride) == 1 && w.padding == Window::Extents{};
}

Tensor patches_of_x(const ConvExtents& e, const Tensor& x) {
  if (is_pointwise(e)) return matrix(x, e.in_channels);
  return gathered<PatchesOfX>(e, x, e.window.images * Window::count(e.window.out), e.taps * e.in_channels);
}

Tensor patches_of_y(const ConvExtents& e, const Tensor& y) {
  if (is_pointwise(e)) return matrix(y, e.out_channels);
  return gathered<PatchesOfY>(e, y, e.window.images * Window::count(e.window.in), e.taps * e.out_channels);
}

/// Calls copy(row) for each of the rows, of so many channels, in parallel.
template <class Copy>
void for_rows(std::int64_t rows, std::int64_t channels, Copy copy) {
  parallel_rows(rows, channels, [&](std::int64_t first, std::int64_t n) {
    for (std::int64_t row = first; row < first + n; ++row) copy(row);
  });
}

/// The taps of a phase, as [taps * out_channels, in_channels], of a weight [out_channels, taps, in_channels].
Tensor turned(const ConvExtents& all, const ConvPhase& phase, const Tensor& weight) {
  const std::int64_t channels = all.in_channels;
  if (all.taps == 1) return matrix(weight, channels);
  const Tensor result = Tensor::empty({phase.extents.taps * all.out_channels, channels}, weight.dtype());
  with_element(weight.dtype(), [&](auto element) {
    const auto* const from = static_cast<const decltype(element)*>(weight.data());
    auto* const to = static_cast<decltype(element)*>(result.data());
    for_rows(result.size(0), channels, [&](std::int64_t row) {
      const std::int64_t tap = phase.tap_of(all, row / all.out_channels);
      std::copy_n(from + (row % all.out_channels * all.taps + tap) * channels, channels, to + row * channels);
    });
  });
  return result;
}

/// Brings the gradient of a phase's pixels to their places.
void scatter(const ConvExtents& all, const ConvPhase& phase, const Tensor& part, const Tensor& dx) {
  const std::int64_t channels = all.in_channels;
  with_element(dx.dtype(), [&](auto element) {
    const auto* const from = static_cast<const decltype(element)*>(part.data());
    auto* const to = static_cast<decltype(element)*>(dx.data());
    for_rows(part.size(0), channels, [&](std::int64_t row) {
      std::copy_n(from + row * channels, channels, to + phase.pixel_of(all, row) * channels);
    });
  });
}

/// Calls run(begin, end) for chunks of the images, each with patches of so many bytes, beside a tensor that every chunk
/// reads anew.
template <class Run>
void for_chunks(std::int64_t images, std::int64_t patch_bytes, const Tensor& stationary, Run run) {
  const std::int64_t step = chunk_summed_rows(images, patch_bytes, static_cast<std::int64_t>(stationary.bytes()));
  for (std::int64_t begin = 0; begin < images; begin += step) run(begin, std::min(images, begin + step));
}

/// The size of an image's patches in bytes. For patches of y, whose phases differ, it is about the sum over all phases.
std::int64_t patch_bytes(const ConvExtents& e, std::int64_t channels, DType dtype) {
  return Window::count(e.window.out) * e.taps * channels * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

void conv_forward_by_products(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& y) {
  const ConvExtents all(geometry, x.shape(), weight.shape(), y.shape());
  const std::int64_t bytes = patch_bytes(all, all.in_channels, x.dtype());
  for_chunks(x.size(0), bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    const Tensor from = x.detach_rows(begin, end);
    const Tensor to = y.detach_rows(begin, end);
    const ConvExtents e(geometry, from.shape(), weight.shape(), to.shape());
    kMatrixProducts.matmul(patches_of_x(e, from), false, matrix(weight, e.taps * e.in_channels), true, bias, false,
                           matrix(to, e.out_channels));
  });
}

void conv_backward_data_by_products(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                                    const Tensor& dx) {
  // Phase by phase, so that no zeros are multiplied between the pixels of dy where the window moves in steps.
  const ConvExtents all(geometry, dx.shape(), weight.shape(), dy.shape());
  const std::vector<ConvPhase> phases = phases_of(all);
  const auto meets_none = [](const ConvPhase& phase) { return phase.extents.taps == 0; };
  std::vector<Tensor> weights;
  for (const ConvPhase& phase : phases) weights.push_back(turned(all, phase, weight));
  const std::int64_t bytes = patch_bytes(all, all.out_channels, dy.dtype());
  for_chunks(dy.size(0), bytes, weight, [&](std::int64_t begin, std::int64_t end) {
    const Tensor from = dy.detach_rows(begin, end);
    const Tensor to = dx.detach_rows(begin, end);
    if (std::ranges::any_of(phases, meets_none)) fill(to, 0);
    for (std::size_t i = 0; i < phases.size(); ++i) {
      ConvPhase phase = phases[i];
      if (meets_none(phase)) continue;
      phase.extents.window.images = end - begin;
      const bool whole = phases.size() == 1;
      const Tensor part =
          whole ? matrix(to, all.in_channels) : Tensor::empty({phase.pixels(), all.in_channels}, dx.dtype());
      kMatrixProducts.matmul(patches_of_y(phase.extents, from), false, weights[i], false, {}, false, part);
      if (!whole) scatter(all, phase, part, to);
    }
  });
}

void conv_backward_weights_by_products(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                                       const Tensor& dweight) {
  const ConvExtents all(geometry, x.shape(), dweight.shape(), dy.shape());
  const Tensor sums = matrix(dweight, all.taps * all.in_channels);
  const std::int64_t bytes = patch_bytes(all, all.in_channels, x.dtype());
  for_chunks(x.size(0), bytes, dweight, [&](std::int64_t begin, std::int64_t end) {
    const Tensor from = x.detach_rows(begin, end);
    const Tensor slope = dy.detach_rows(begin, end);
    const ConvExtents e(geometry, from.shape(), dweight.shape(), slope.shape());
    kMatrixProducts.matmul(matrix(slope, e.out_channels), true, patches_of_x(e, from), false, {}, add || begin > 0,
                           sums);
  });
}

}  // namespace lockstep::kernels::cpu
