// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/convolution.h"

#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/geometry/window.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/reference/families.h"
#include "runtime/kernels/reference/values.h"

namespace lockstep::kernels::reference {

namespace {

/// Calls product(x index, weight index, y index) for every product x * weight that convolution adds to y.
template <class Product>
void for_each_product(const ConvGeometry& geometry, const Shape& x, const Shape& weight, const Shape& y,
                      Product product) {
  Window::Extents kernel{1, 1, 1};
  for (int d = 0; d < geometry.spatial_rank; ++d) kernel[static_cast<std::size_t>(d)] = weight[d + 1];
  const Window window(x, y, geometry.spatial_rank, kernel, geometry.stride, geometry.padding, geometry.dilation);
  const std::int64_t in_channels = x.back();
  const std::int64_t out_channels = weight.front();
  const std::int64_t group_in = in_channels / geometry.groups;
  const std::int64_t group_out = out_channels / geometry.groups;
  window.for_each_tap([&](std::int64_t in_pixel, std::int64_t kernel_pixel, std::int64_t out_pixel) {
    for (std::int64_t o = 0; o < out_channels; ++o) {
      const std::int64_t first_channel = o / group_out * group_in;
      for (std::int64_t c = 0; c < group_in; ++c) {
        product(static_cast<std::size_t>(in_pixel * in_channels + first_channel + c),
                static_cast<std::size_t>((o * Window::count(window.kernel) + kernel_pixel) * group_in + c),
                static_cast<std::size_t>(out_pixel * out_channels + o));
      }
    }
  });
}

void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& y) {
  checks::conv_forward(geometry, x, weight, bias, y);
  const Values input = load(x);
  const Values kernel = load(weight);
  Values output(static_cast<std::size_t>(y.numel()), 0.0);
  if (bias.defined()) {
    const Values shift = load(bias);
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = shift[i % shift.size()];
  }
  for_each_product(geometry, x.shape(), weight.shape(), y.shape(),
                   [&](std::size_t i, std::size_t w, std::size_t o) { output[o] += input[i] * kernel[w]; });
  store(output, y);
}

void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                   const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) {
  checks::conv_backward(geometry, x, weight, dy, dx, dweight, dbias);
  const Values gradient = load(dy);
  if (dx.defined()) {
    const Values kernel = load(weight);
    Values sums(static_cast<std::size_t>(dx.numel()), 0.0);
    for_each_product(geometry, x.shape(), weight.shape(), dy.shape(),
                     [&](std::size_t i, std::size_t w, std::size_t o) { sums[i] += gradient[o] * kernel[w]; });
    store(sums, dx);
  }
  if (dweight.defined()) {
    const Values input = load(x);
    Values sums = load_if(accumulate, dweight);
    for_each_product(geometry, x.shape(), weight.shape(), dy.shape(),
                     [&](std::size_t i, std::size_t w, std::size_t o) { sums[w] += gradient[o] * input[i]; });
    store(sums, dweight);
  }
  if (dbias.defined()) kReductions.sum_rows(dy, accumulate, dbias);
}

}  // namespace

const Convolution kConvolution{.conv_forward = conv_forward, .conv_backward = conv_backward};

}  // namespace lockstep::kernels::reference
