// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/window.h"

namespace lockstep::kernels {

Window::Window(const Shape& x, const Shape& y, int spatial_rank, const Extents& given_kernel,
               const Extents& given_stride, const Extents& given_padding, const Extents& given_dilation)
    : images(x.front()) {
  for (int d = 0; d < spatial_rank; ++d) {
    const auto from = static_cast<std::size_t>(d);
    const auto to = static_cast<std::size_t>(3 - spatial_rank + d);
    in[to] = x[d + 1];
    out[to] = y[d + 1];
    kernel[to] = given_kernel[from];
    stride[to] = given_stride[from];
    padding[to] = given_padding[from];
    dilation[to] = given_dilation[from];
  }
}

}  // namespace lockstep::kernels
