// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/upsampling.h"

#include <cmath>
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels {

namespace {

void require_images(const Shape& x, int spatial_rank) {
  if (spatial_rank < 1 || spatial_rank > 3 || x.rank() != spatial_rank + 2) {
    throw ShapeError("upsample: x must be [N, " + std::to_string(spatial_rank) +
                     " spatial extents, C] with 1 to 3 of " + "them, found " + x.str());
  }
}

}  // namespace

Shape upsample_output_shape(const Shape& x, const UpsampleGeometry& geometry) {
  require_images(x, geometry.spatial_rank);
  Shape y = x;
  for (int d = 0; d < geometry.spatial_rank; ++d) {
    const double factor = geometry.scale_factor[static_cast<std::size_t>(d)];
    const double extent = std::floor(static_cast<double>(x[d + 1]) * factor);
    if (!(extent >= 1 && extent < 0x1p31)) {
      throw ShapeError("upsample: a scale factor of " + std::to_string(factor) + " leaves no extent of " +
                       std::to_string(x[d + 1]) + " that a tensor can have");
    }
    y = y.with(d + 1, static_cast<std::int64_t>(extent));
  }
  return y;
}

namespace checks {

void upsample(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y) {
  const Check check("upsample");
  check.floating("x", x).dtype("y", y, x.dtype());
  require_images(x.shape(), geometry.spatial_rank);
  require_images(y.shape(), geometry.spatial_rank);
  const auto both = [&](const char* must) { return "x " + x.shape().str() + " and y " + y.shape().str() + must; };
  check.that(x.size(0) == y.size(0) && x.shape().back() == y.shape().back(),
             [&] { return both(" must agree in samples and channels"); });
  for (int d = 1; d <= geometry.spatial_rank; ++d) {
    check.that(x.size(d) > 0 && y.size(d) > 0, [&] { return both(" must have pixels"); });
  }
}

}  // namespace checks

}  // namespace lockstep::kernels
