// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "runtime/kernels/functors/upsampling.h"
#include "runtime/kernels/geometry/spatial.h"

namespace lockstep::kernels {

/// The three spatial dimensions of an upsampling from images x to images y; dimensions that these lack come first, one
/// pixel each.
inline std::array<UpsampleAxis, 3> axes_of(const UpsampleGeometry& geometry, const Shape& x, const Shape& y) {
  const bool nearest = geometry.mode == UpsampleMode::kNearest;
  std::array<UpsampleAxis, 3> axes;
  const int missing = 3 - geometry.spatial_rank;
  for (int d = 0; d < 3; ++d) {
    const int own = d - missing;
    axes[static_cast<std::size_t>(d)] = own < 0
                                            ? UpsampleAxis::of(1, 1, nearest, false, 0.0)
                                            : UpsampleAxis::of(x[own + 1], y[own + 1], nearest, geometry.align_corners,
                                                               geometry.scale_factor[static_cast<std::size_t>(own)]);
  }
  return axes;
}

}  // namespace lockstep::kernels
