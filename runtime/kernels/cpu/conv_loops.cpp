// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/conv_loops.h"

#include <algorithm>

#include "runtime/kernels/cpu/conv_patches.h"
#include "runtime/kernels/cpu/products.h"

namespace lockstep::kernels::cpu {

namespace {

const float* numbers_of(const Tensor& tensor) { return static_cast<const float*>(tensor.data()); }

/// Some columns of some patches, in `room`.
template <class Patches>
StridedMatrix part(const Patches& patches, std::int64_t row, std::int64_t rows, std::int64_t term, std::int64_t terms,
                   float* room) {
  for (std::int64_t r = 0; r < rows; ++r) patches.line(row + r, term, terms, room + r * terms);
  return {room, terms, 1};
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
        return part(PatchesOfX<float>(e, x, group), row, rows, term, count, room);
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
        return part(PatchesOfY<float>(e, dy, group), row, rows, term, count, room);
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
        const PatchesOfX<float> patches(e, x, group);
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
