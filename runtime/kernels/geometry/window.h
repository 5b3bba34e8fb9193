// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/shape.h"

namespace lockstep::kernels {

/// A window that slides over images, brought to three spatial dimensions: missing ones come first, with extent 1.
struct Window {
  using Extents = std::array<std::int64_t, 3>;
  std::int64_t images = 0;
  Extents in{1, 1, 1};
  Extents out{1, 1, 1};
  Extents kernel{1, 1, 1};
  Extents stride{1, 1, 1};
  Extents padding{0, 0, 0};
  Extents dilation{1, 1, 1};

  Window(const Shape& x, const Shape& y, int spatial_rank, const Extents& kernel, const Extents& stride,
         const Extents& padding, const Extents& dilation);

  /// Calls tap(in_pixel, kernel_pixel, out_pixel) for every position of the window, every pixel under it, and every
  /// image. in_pixel and out_pixel count across images; pixels in the padding are left out.
  template <class Tap>
  void for_each_tap(Tap tap) const;

  static std::int64_t count(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }
};

namespace window_detail {

/// Calls visit(position, flat index) for every position in the box.
template <class Visit>
void for_each_position(const Window::Extents& box, Visit visit) {
  std::int64_t flat = 0;
  for (std::int64_t d = 0; d < box[0]; ++d) {
    for (std::int64_t h = 0; h < box[1]; ++h) {
      for (std::int64_t w = 0; w < box[2]; ++w) visit(Window::Extents{d, h, w}, flat++);
    }
  }
}

}  // namespace window_detail

template <class Tap>
void Window::for_each_tap(Tap tap) const {
  using window_detail::for_each_position;
  for (std::int64_t image = 0; image < images; ++image) {
    for_each_position(out, [&](const Extents& o, std::int64_t out_pixel) {
      for_each_position(kernel, [&](const Extents& k, std::int64_t kernel_pixel) {
        std::int64_t in_pixel = image;
        for (std::size_t d = 0; d < 3; ++d) {
          const std::int64_t i = o[d] * stride[d] - padding[d] + k[d] * dilation[d];
          if (i < 0 || i >= in[d]) return;
          in_pixel = in_pixel * in[d] + i;
        }
        tap(in_pixel, kernel_pixel, image * count(out) + out_pixel);
      });
    });
  }
}

}  // namespace lockstep::kernels
