// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/geometry/spatial.h"
#include "runtime/kernels/geometry/window.h"
#include "runtime/tensor/tensor.h"

// A convolution as a product: its patches are the pixels that the window sees at each of its positions.

namespace lockstep::kernels::cpu {

/// A convolution's extents. Channels are those of one group.
struct ConvExtents {
  Window window;
  std::int64_t groups;
  std::int64_t taps;         ///< pixels under the window
  std::int64_t in_channels;  ///< of a group
  std::int64_t out_channels;

  ConvExtents(const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y)
      : window(x, y, geometry.spatial_rank, kernel_of(geometry, weight), geometry.stride, geometry.padding,
               geometry.dilation),
        groups(geometry.groups),
        taps(Window::count(window.kernel)),
        in_channels(x.back() / groups),
        out_channels(y.back() / groups) {}

  static Window::Extents kernel_of(const ConvGeometry& geometry, const Shape& weight) {
    Window::Extents kernel{1, 1, 1};
    for (int d = 0; d < geometry.spatial_rank; ++d) kernel[static_cast<std::size_t>(d)] = weight[d + 1];
    return kernel;
  }
};

inline Window::Extents position(std::int64_t flat, const Window::Extents& box) {
  return {flat / (box[1] * box[2]), flat / box[2] % box[1], flat % box[2]};
}

/// The pixel of x under tap `k` of the window at pixel `o` of y, along dimension `d`; -1: none.
inline std::int64_t pixel_of_x(const Window& w, std::size_t d, std::int64_t o, std::int64_t k) {
  const std::int64_t i = o * w.stride[d] - w.padding[d] + k * w.dilation[d];
  return i >= 0 && i < w.in[d] ? i : -1;
}

/// The pixel of y whose window has pixel `i` of x under tap `k`, along dimension `d`; -1: none.
inline std::int64_t pixel_of_y(const Window& w, std::size_t d, std::int64_t i, std::int64_t k) {
  const std::int64_t from = i + w.padding[d] - k * w.dilation[d];
  return from >= 0 && from % w.stride[d] == 0 && from / w.stride[d] < w.out[d] ? from / w.stride[d] : -1;
}

/// A matrix with one line for each pixel of `to`, across images: the channels of a group of `from` at each tap,
/// [taps, channels]; zeros where a tap meets no pixel.
template <class Element, std::int64_t (*kPixel)(const Window&, std::size_t, std::int64_t, std::int64_t)>
class Patches {
 public:
  using Extents = Window::Extents;

  /// n elements of a line from `begin` on.
  void line(std::int64_t number, std::int64_t begin, std::int64_t n, Element* out) const {
    const auto [image, at] = place(number);
    for (const std::int64_t end = begin + n; begin < end;) {
      const std::int64_t channel = begin % channels_;
      const std::int64_t run = std::min(channels_ - channel, end - begin);
      copy(source(image, at, position(begin / channels_, window_.kernel)), channel, run, out);
      out += run;
      begin += run;
    }
  }

  /// Whole lines, one behind another.
  void lines(std::int64_t first, std::int64_t count, Element* out) const {
    for (std::int64_t number = first; number < first + count; ++number) {
      const auto [image, at] = place(number);
      for (Extents k{}; k[0] < window_.kernel[0]; ++k[0]) {
        for (k[1] = 0; k[1] < window_.kernel[1]; ++k[1]) {
          for (k[2] = 0; k[2] < window_.kernel[2]; ++k[2], out += channels_) {
            copy(source(image, at, k), 0, channels_, out);
          }
        }
      }
    }
  }

 protected:
  /// `data`: the group's first channel. `pitch`: elements from pixel to pixel.
  Patches(const Window& window, const Extents& from, const Extents& to, const Element* data, std::int64_t channels,
          std::int64_t pitch)
      : window_(window), from_(from), to_(to), data_(data), channels_(channels), pitch_(pitch) {}

 private:
  struct Place {
    std::int64_t image;
    Extents at;
  };

  Place place(std::int64_t number) const {
    return {number / Window::count(to_), position(number % Window::count(to_), to_)};
  }
  /// The pixel of `from`, across images, under a tap of the window there; -1: none.
  std::int64_t source(std::int64_t image, const Extents& at, const Extents& tap) const {
    std::int64_t pixel = image;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t p = kPixel(window_, d, at[d], tap[d]);
      if (p < 0) return -1;
      pixel = pixel * from_[d] + p;
    }
    return pixel;
  }
  void copy(std::int64_t pixel, std::int64_t channel, std::int64_t n, Element* out) const {
    if (pixel < 0) {
      std::fill_n(out, n, Element{});
    } else {
      std::copy_n(data_ + pixel * pitch_ + channel, n, out);
    }
  }

  const Window& window_;
  const Extents& from_;
  const Extents& to_;
  const Element* data_;
  std::int64_t channels_;
  std::int64_t pitch_;
};

/// The patches of x: a line holds the pixels of x that the window sees at one pixel of y. Element is a type of the size
/// of x's elements. The object refers to `extents` and to the memory of x.
template <class Element>
struct PatchesOfX : Patches<Element, pixel_of_x> {
  PatchesOfX(const ConvExtents& extents, const Tensor& x, std::int64_t group)
      : Patches<Element, pixel_of_x>(extents.window, extents.window.in, extents.window.out,
                                     static_cast<const Element*>(x.data()) + group * extents.in_channels,
                                     extents.in_channels, x.shape().back()) {}
};

/// The patches of y: a line holds, tap by tap, the pixels of y whose windows see one pixel of x. Element and lifetimes
/// as for x.
template <class Element>
struct PatchesOfY : Patches<Element, pixel_of_y> {
  PatchesOfY(const ConvExtents& extents, const Tensor& y, std::int64_t group)
      : Patches<Element, pixel_of_y>(extents.window, extents.window.out, extents.window.in,
                                     static_cast<const Element*>(y.data()) + group * extents.out_channels,
                                     extents.out_channels, y.shape().back()) {}
};

}  // namespace lockstep::kernels::cpu
