// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "runtime/kernels/cpu/conv_patches.h"

namespace lockstep::kernels::cpu {

/// Pixels of x that lie a stride apart meet the same taps of the window. The gradient of such a phase is that of a
/// convolution of stride 1, whose window has these taps alone.
struct ConvPhase {
  using Extents = Window::Extents;

  ConvExtents extents;  ///< in: pixels of the phase; kernel: its taps, of which there may be none
  Extents first;        ///< of its pixels; the others follow at steps of the convolution's stride
  Extents first_tap;    ///< in the convolution's window
  Extents tap_step;

  ConvPhase(const ConvExtents& all, const Extents& residue)
      : extents(all), first(residue), first_tap{0, 0, 0}, tap_step{1, 1, 1} {
    const Window& of = all.window;
    Window& window = extents.window;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t stride = of.stride[d], dilation = of.dilation[d], offset = residue[d] + of.padding[d];
      tap_step[d] = stride / std::gcd(stride, dilation);
      while (first_tap[d] < tap_step[d] && (offset - first_tap[d] * dilation) % stride != 0) ++first_tap[d];
      const bool meets_any = first_tap[d] < tap_step[d];
      window.in[d] = residue[d] < of.in[d] ? (of.in[d] - residue[d] - 1) / stride + 1 : 0;
      window.kernel[d] =
          meets_any && first_tap[d] < of.kernel[d] ? (of.kernel[d] - first_tap[d] - 1) / tap_step[d] + 1 : 0;
      window.stride[d] = 1;
      window.dilation[d] = tap_step[d] * dilation / stride;
      window.padding[d] = (offset - first_tap[d] * dilation) / stride;
    }
    extents.taps = Window::count(window.kernel);
  }

  std::int64_t pixels() const { return extents.window.images * Window::count(extents.window.in); }
  /// The convolution's pixel of x, across images, that is pixel `at` of the phase.
  std::int64_t pixel_of(const ConvExtents& all, std::int64_t at) const {
    const std::int64_t count = Window::count(extents.window.in);
    return at / count * Window::count(all.window.in) +
           place(position(at % count, extents.window.in), first, all.window.stride, all.window.in);
  }
  /// The convolution's tap that is tap `at` of the phase.
  std::int64_t tap_of(const ConvExtents& all, std::int64_t at) const {
    return place(position(at, extents.window.kernel), first_tap, tap_step, all.window.kernel);
  }

 private:
  static std::int64_t place(const Extents& at, const Extents& begin, const Extents& step, const Extents& box) {
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < 3; ++d) flat = flat * box[d] + begin[d] + at[d] * step[d];
    return flat;
  }
};

/// All phases that have pixels; one where the stride is 1.
inline std::vector<ConvPhase> phases_of(const ConvExtents& all) {
  std::vector<ConvPhase> phases;
  window_detail::for_each_position(all.window.stride, [&](const Window::Extents& residue, std::int64_t) {
    const ConvPhase phase(all, residue);
    if (phase.pixels() > 0) phases.push_back(phase);
  });
  return phases;
}

}  // namespace lockstep::kernels::cpu
