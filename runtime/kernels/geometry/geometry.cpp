// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/kernels/backend.h"
#include "runtime/tensor/error.h"

namespace lockstep::kernels {

namespace {

void require_spatial(const std::string& operation, const Shape& x, int spatial_rank) {
  if (spatial_rank < 1 || spatial_rank > 3) {
    throw ShapeError(operation + ": spatial_rank must be 1, 2 or 3, found " + std::to_string(spatial_rank));
  }
  if (x.rank() != spatial_rank + 2) {
    throw ShapeError(operation + ": x must be [N, " + std::to_string(spatial_rank) + " spatial extents, C], found " +
                     x.str());
  }
}

}  // namespace

std::int64_t output_extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation) {
  const std::string window = "kernel " + std::to_string(kernel) + ", stride " + std::to_string(stride) + ", padding " +
                             std::to_string(padding) + ", dilation " + std::to_string(dilation);
  if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0) {
    throw ShapeError("kernel, stride and dilation must be at least 1 and padding at least 0, found " + window);
  }
  const std::int64_t span = dilation * (kernel - 1) + 1;
  if (in < 1 || span > in + 2 * padding) {
    throw ShapeError("an extent of " + std::to_string(in) + " is too small for " + window,
                     "Use a smaller kernel, more padding, or larger inputs.");
  }
  return (in + 2 * padding - span) / stride + 1;
}

Shape conv_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry) {
  require_spatial("conv", x, geometry.spatial_rank);
  if (weight.rank() != x.rank()) {
    throw ShapeError("conv: weight must be [O, kernel..., C / groups] with the rank of x " + x.str() + ", found " +
                     weight.str());
  }
  const std::int64_t groups = geometry.groups;
  if (groups < 1 || x.back() != weight.back() * groups || weight.front() % groups != 0) {
    throw ShapeError("conv: x " + x.str() + " and weight " + weight.str() + " do not fit " + std::to_string(groups) +
                     " groups: weight must be [O, kernel..., C / groups] with O a multiple of groups");
  }
  Shape y = x.with(-1, weight.front());
  for (int d = 0; d < geometry.spatial_rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    y = y.with(d + 1,
               output_extent(x[d + 1], weight[d + 1], geometry.stride[i], geometry.padding[i], geometry.dilation[i]));
  }
  return y;
}

Shape pool_output_shape(const Shape& x, const PoolGeometry& geometry) {
  require_spatial("pool", x, geometry.spatial_rank);
  Shape y = x;
  for (int d = 0; d < geometry.spatial_rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    // With more padding a window could hold nothing but padding, which has no maximum.
    if (geometry.padding[i] * 2 > geometry.window[i]) {
      throw ShapeError("pool: padding must be at most half the window, found padding " +
                       std::to_string(geometry.padding[i]) + " for window " + std::to_string(geometry.window[i]));
    }
    y = y.with(d + 1, output_extent(x[d + 1], geometry.window[i], geometry.stride[i], geometry.padding[i], 1));
  }
  return y;
}

}  // namespace lockstep::kernels
