// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/device.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

enum class UpsampleMode : std::uint8_t { kNearest, kLinear };

/// How the 1 to 3 spatial dimensions of one tensor are brought to other extents, PyTorch's interpolate().
struct UpsampleGeometry {
  UpsampleMode mode = UpsampleMode::kNearest;
  int spatial_rank = 2;
  /// kLinear: the corners' centres stay where they are. Otherwise the corners themselves do.
  bool align_corners = false;
  /// Output extents per input extent, which places the output's pixels in the input where the corners' centres do not.
  /// 0: the quotient of the extents.
  std::array<double, 3> scale_factor{};

  friend bool operator==(const UpsampleGeometry&, const UpsampleGeometry&) = default;
};

/// x [N, spatial..., C] -> [N, spatial'..., C] with the extents input extent * scale_factor, rounded down. Throws
/// ShapeError for another rank and for a scale factor that leaves an extent empty.
Shape upsample_output_shape(const Shape& x, const UpsampleGeometry& geometry);

/// x [N, spatial..., C], y [N, spatial'..., C] of the same floating dtype.
struct Upsampling {
  /// Those of the backend for tensors on `device`.
  static const Upsampling& on(Device device);

  /// y = the nearest pixel of x, or the one between its two neighbours along each dimension, functors/upsampling.h.
  void (*upsample)(const UpsampleGeometry& geometry, const Tensor& x, const Tensor& y);
  /// dx = the sum of dy over the pixels that were made of one, times its weight in them; in a fixed order.
  void (*upsample_backward)(const UpsampleGeometry& geometry, const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
