// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/conv_loops.h"

#include <algorithm>

#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/geometry/window.h"

namespace lockstep::kernels::cpu {

namespace {

using Extents = Window::Extents;

const float* numbers_of(const Tensor& tensor) { return static_cast<const float*>(tensor.data()); }

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

  static Extents kernel_of(const ConvGeometry& geometry, const Shape& weight) {
    Extents kernel{1, 1, 1};
    for (int d = 0; d < geometry.spatial_rank; ++d) kernel[static_cast<std::size_t>(d)] = weight[d + 1];
    return kernel;
  }
};

/// The pixel of x under tap `k` of the window at pixel `o` of y, along dimension `d`; -1: none.
std::int64_t pixel_of_x(const Window& w, std::size_t d, std::int64_t o, std::int64_t k) {
  const std::int64_t i = o * w.stride[d] - w.padding[d] + k * w.dilation[d];
  return i >= 0 && i < w.in[d] ? i : -1;
}

/// The pixel of y whose window has pixel `i` of x under tap `k`, along dimension `d`; -1: none.
std::int64_t pixel_of_y(const Window& w, std::size_t d, std::int64_t i, std::int64_t k) {
  const std::int64_t from = i + w.padding[d] - k * w.dilation[d];
  return from >= 0 && from % w.stride[d] == 0 && from / w.stride[d] < w.out[d] ? from / w.stride[d] : -1;
}

Extents position(std::int64_t flat, const Extents& box) {
  return {flat / (box[1] * box[2]), flat / box[2] % box[1], flat % box[2]};
}

/// A matrix with one line for each pixel of `to`: the channels of a group of `from` at each tap, [taps, channels].
struct Patches {
  const Window& window;
  const Extents& from;
  const Extents& to;
  std::int64_t (*pixel)(const Window& window, std::size_t dimension, std::int64_t at, std::int64_t tap);
  const float* data;      ///< the group's first channel
  std::int64_t channels;  ///< of the group
  std::int64_t pitch;     ///< from pixel to pixel

  /// n elements of a line from `begin` on; lines count across images.
  void line(std::int64_t number, std::int64_t begin, std::int64_t n, float* out) const {
    const std::int64_t image = number / Window::count(to);
    const Extents at = position(number % Window::count(to), to);
    for (const std::int64_t end = begin + n; begin < end;) {
      const std::int64_t tap = begin / channels;
      const std::int64_t channel = begin % channels;
      const std::int64_t run = std::min(channels - channel, end - begin);
      const Extents k = position(tap, window.kernel);
      std::int64_t source = image;
      for (std::size_t d = 0; d < 3 && source >= 0; ++d) {
        const std::int64_t p = pixel(window, d, at[d], k[d]);
        source = p < 0 ? -1 : source * from[d] + p;
      }
      if (source < 0) {
        std::fill_n(out, run, 0.0f);
      } else {
        std::copy_n(data + source * pitch + channel, run, out);
      }
      out += run;
      begin += run;
    }
  }

  StridedMatrix part(std::int64_t row, std::int64_t rows, std::int64_t term, std::int64_t terms, float* room) const {
    for (std::int64_t r = 0; r < rows; ++r) line(row + r, term, terms, room + r * terms);
    return {room, terms, 1};
  }
};

Patches patches_of_x(const ConvExtents& e, const Tensor& x, std::int64_t group) {
  return {e.window,      e.window.in,     e.window.out, pixel_of_x, numbers_of(x) + group * e.in_channels,
          e.in_channels, x.shape().back()};
}

Patches patches_of_y(const ConvExtents& e, const Tensor& y, std::int64_t group) {
  return {e.window,       e.window.out,    e.window.in, pixel_of_y, numbers_of(y) + group * e.out_channels,
          e.out_channels, y.shape().back()};
}

}  // namespace

void conv_forward_by_loops(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Tensor& y) {
  const ConvExtents e(geometry, x.shape(), weight.shape(), y.shape());
  const std::int64_t terms = e.taps * e.in_channels;
  const std::int64_t channels = y.shape().back();
  const float* const shift = bias.defined() ? numbers_of(bias) : nullptr;
  float* const result = static_cast<float*>(y.data());
  multiply(
      {e.groups, e.window.images * Window::count(e.window.out), e.out_channels, terms},
      [&](std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t term, std::int64_t count, float* room) {
        return patches_of_x(e, x, group).part(row, rows, term, count, room);
      },
      [&](std::int64_t group, std::int64_t term, std::int64_t count, std::int64_t column, std::int64_t columns,
          float* strips) {
        const StridedMatrix turned{numbers_of(weight) + group * e.out_channels * terms, 1, terms};
        pack_strips(turned.at(term, column), count, columns, strips);
      },
      [&](std::int64_t group, std::int64_t row, std::int64_t column, std::int64_t columns, const float* sums) {
        const std::int64_t channel = group * e.out_channels + column;
        float* const to = result + row * channels + channel;
        for (std::int64_t c = 0; c < columns; ++c) to[c] = sums[c] + (shift == nullptr ? 0.0f : shift[channel + c]);
      });
}

void conv_backward_data_by_loops(const ConvGeometry& geometry, const Tensor& dy, const Tensor& weight,
                                 const Tensor& dx) {
  const ConvExtents e(geometry, dx.shape(), weight.shape(), dy.shape());
  const std::int64_t channels = dx.shape().back();
  float* const result = static_cast<float*>(dx.data());
  multiply(
      {e.groups, e.window.images * Window::count(e.window.in), e.in_channels, e.taps * e.out_channels},
      [&](std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t term, std::int64_t count, float* room) {
        return patches_of_y(e, dy, group).part(row, rows, term, count, room);
      },
      [&](std::int64_t group, std::int64_t term, std::int64_t count, std::int64_t column, std::int64_t columns,
          float* strips) {
        // Terms run over the taps, and over the group's channels of y in each.
        const auto line = [&](std::int64_t k, std::int64_t begin, std::int64_t n, float* out) {
          const std::int64_t channel = group * e.out_channels + k % e.out_channels;
          std::copy_n(numbers_of(weight) + (channel * e.taps + k / e.out_channels) * e.in_channels + begin, n, out);
        };
        pack_lines(line, term, count, column, columns, strips);
      },
      [&](std::int64_t group, std::int64_t row, std::int64_t column, std::int64_t columns, const float* sums) {
        std::copy_n(sums, columns, result + row * channels + group * e.in_channels + column);
      });
}

void conv_backward_weights_by_loops(const ConvGeometry& geometry, const Tensor& x, const Tensor& dy, bool add,
                                    const Tensor& dweight) {
  const ConvExtents e(geometry, x.shape(), dweight.shape(), dy.shape());
  const std::int64_t width = e.taps * e.in_channels;
  float* const result = static_cast<float*>(dweight.data());
  multiply(
      {e.groups, e.out_channels, width, e.window.images * Window::count(e.window.out)},
      [&](std::int64_t group, std::int64_t row, std::int64_t, std::int64_t term, std::int64_t, float*) {
        return StridedMatrix{numbers_of(dy) + group * e.out_channels, 1, dy.shape().back()}.at(row, term);
      },
      [&](std::int64_t group, std::int64_t term, std::int64_t count, std::int64_t column, std::int64_t columns,
          float* strips) {
        const Patches patches = patches_of_x(e, x, group);
        const auto line = [&](std::int64_t k, std::int64_t begin, std::int64_t n, float* out) {
          patches.line(k, begin, n, out);
        };
        pack_lines(line, term, count, column, columns, strips);
      },
      [&](std::int64_t group, std::int64_t row, std::int64_t column, std::int64_t columns, const float* sums) {
        float* const to = result + (group * e.out_channels + row) * width + column;
        for (std::int64_t c = 0; c < columns; ++c) to[c] = (add ? to[c] : 0.0f) + sums[c];
      });
}

}  // namespace lockstep::kernels::cpu
