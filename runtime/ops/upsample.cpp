// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/upsample.h"

#include <algorithm>
#include <string>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/base/error.h"
#include "runtime/kernels/upsampling.h"

namespace lockstep::ops {

using autograd::BackwardContext;
using kernels::UpsampleGeometry;
using kernels::UpsampleMode;

namespace {

Tensor upsample_gradient(const UpsampleGeometry& geometry, const Tensor& dy, const Shape& shape);

Tensor resample(amp::Op op, const UpsampleGeometry& geometry, const Tensor& x, const Shape& shape) {
  const Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  kernels::Upsampling::on(x.device()).upsample(geometry, x, y);
  autograd::record(y, name_of(op), {x},
                   {.recorded = [geometry, shape = x.shape()](const Tensor& dy, const BackwardContext&) {
                     return std::vector<Tensor>{upsample_gradient(geometry, dy, shape)};
                   }});
  autograd::note_options(y, geometry);
  return y;
}

amp::Op op_of(UpsampleMode mode) {
  return mode == UpsampleMode::kNearest ? amp::Op::kUpsampleNearest : amp::Op::kUpsampleLinear;
}

/// The gradient of resample, whose own gradient is resample again.
Tensor upsample_gradient(const UpsampleGeometry& geometry, const Tensor& dy, const Shape& shape) {
  const Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
  kernels::Upsampling::on(dy.device()).upsample_backward(geometry, dy, dx);
  autograd::record(dx, "upsample_backward", {dy},
                   {.recorded = [geometry, shape = dy.shape()](const Tensor& slope, const BackwardContext&) {
                     return std::vector<Tensor>{resample(op_of(geometry.mode), geometry, slope, shape)};
                   }});
  return dx;
}

UpsampleGeometry geometry_of(const Tensor& x, UpsampleMode mode, bool align_corners, std::size_t given) {
  const int spatial = x.shape().rank() - 2;
  if (spatial < 1 || spatial > 3) {
    throw ShapeError("upsample: x must be [N, 1 to 3 spatial extents, C], found " + describe(x));
  }
  if (given != static_cast<std::size_t>(spatial)) {
    throw ShapeError("upsample: " + std::to_string(given) + " extents or factors for the " + std::to_string(spatial) +
                     " spatial dimensions of " + describe(x));
  }
  if (mode == UpsampleMode::kNearest && align_corners) {
    throw UsageError("upsample: align_corners has no meaning for the nearest pixel");
  }
  return {.mode = mode, .spatial_rank = spatial, .align_corners = align_corners};
}

}  // namespace

Tensor upsample(const Tensor& input, const std::vector<std::int64_t>& extents, UpsampleMode mode, bool align_corners) {
  const Tensor x = amp::autocast(op_of(mode), input);
  const UpsampleGeometry geometry = geometry_of(x, mode, align_corners, extents.size());
  Shape shape = x.shape();
  for (int d = 0; d < geometry.spatial_rank; ++d) shape = shape.with(d + 1, extents[static_cast<std::size_t>(d)]);
  return resample(op_of(mode), geometry, x, shape);
}

Tensor upsample_by(const Tensor& input, const std::vector<double>& scale_factor, UpsampleMode mode,
                   bool align_corners) {
  const Tensor x = amp::autocast(op_of(mode), input);
  const auto spatial = static_cast<std::size_t>(std::max(x.shape().rank() - 2, 0));
  const std::vector<double> factors =
      scale_factor.size() == 1 ? std::vector(spatial, scale_factor.front()) : scale_factor;
  UpsampleGeometry geometry = geometry_of(x, mode, align_corners, factors.size());
  std::ranges::copy(factors, geometry.scale_factor.begin());
  return resample(op_of(mode), geometry, x, upsample_output_shape(x.shape(), geometry));
}

}  // namespace lockstep::ops
