// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/geometry/spatial.h"

#include <array>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/shape.h"

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

/// Throws ShapeError for values that no window can have. Returns the window in words.
std::string require_window(std::int64_t kernel, std::int64_t stride, std::int64_t padding, std::int64_t dilation) {
  const std::string window = "kernel " + std::to_string(kernel) + ", stride " + std::to_string(stride) + ", padding " +
                             std::to_string(padding) + ", dilation " + std::to_string(dilation);
  if (kernel < 1 || stride < 1 || dilation < 1 || padding < 0) {
    throw ShapeError("kernel, stride and dilation must be at least 1 and padding at least 0, found " + window);
  }
  return window;
}

}  // namespace

std::int64_t output_extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation) {
  const std::string window = require_window(kernel, stride, padding, dilation);
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

Shape conv_transpose_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry,
                                  const std::array<std::int64_t, 3>& output_padding) {
  require_spatial("conv_transpose", x, geometry.spatial_rank);
  if (weight.rank() != x.rank()) {
    throw ShapeError("conv_transpose: weight must be [C, kernel..., O / groups] with the rank of x " + x.str() +
                     ", found " + weight.str());
  }
  const std::int64_t groups = geometry.groups;
  if (groups < 1 || x.back() != weight.front() || x.back() % groups != 0) {
    throw ShapeError("conv_transpose: x " + x.str() + " and weight " + weight.str() + " do not fit " +
                     std::to_string(groups) +
                     " groups: weight must be [C, kernel..., O / groups] with C a multiple of groups");
  }
  Shape y = x.with(-1, weight.back() * groups);
  for (int d = 0; d < geometry.spatial_rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t stride = geometry.stride[i];
    const std::int64_t extra = output_padding[i];
    const std::string window = require_window(weight[d + 1], stride, geometry.padding[i], geometry.dilation[i]);
    if (extra < 0 || extra >= stride) {
      throw ShapeError("conv_transpose: output_padding must be at least 0 and less than the stride " +
                       std::to_string(stride) + ", found " + std::to_string(extra));
    }
    const std::int64_t span = geometry.dilation[i] * (weight[d + 1] - 1) + 1;
    const std::int64_t extent = (x[d + 1] - 1) * stride - 2 * geometry.padding[i] + span + extra;
    if (x[d + 1] < 1 || extent < 1) {
      throw ShapeError(
          "conv_transpose: nothing is left of an extent of " + std::to_string(x[d + 1]) + " with " + window,
          "Use less padding, or larger inputs.");
    }
    y = y.with(d + 1, extent);
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
