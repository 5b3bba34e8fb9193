// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/shape.h"

namespace lockstep::kernels {

/// Convolution over 1 to 3 spatial dimensions. Only the first spatial_rank entries of each array count.
struct ConvGeometry {
  int spatial_rank = 2;
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 0, 0};  ///< on both sides
  std::array<std::int64_t, 3> dilation{1, 1, 1};
  std::int64_t groups = 1;

  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

/// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1; throws ShapeError if it or an argument is invalid.
std::int64_t output_extent(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation);
/// [N, spatial..., C] convolved with [O, kernel..., C / groups] gives [N, spatial'..., O]. Throws ShapeError.
Shape conv_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry);
/// The x of the convolution whose y has the shape of this x [N, spatial..., C]: with weight [C, kernel..., O / groups]
/// it is [N, spatial'..., O], where spatial' = (spatial - 1) stride - 2 padding + dilation (kernel - 1) + 1 +
/// output_padding. A convolution with stride s maps s extents to one: output_padding, in [0, s), picks one of them.
/// Throws ShapeError.
Shape conv_transpose_output_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry,
                                  const std::array<std::int64_t, 3>& output_padding);

enum class PoolKind : std::uint8_t { kMax, kAverage };

/// Pooling over 1 to 3 spatial dimensions.
struct PoolGeometry {
  PoolKind kind = PoolKind::kMax;
  int spatial_rank = 2;
  std::array<std::int64_t, 3> window{1, 1, 1};
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> padding{0, 0, 0};
  bool count_include_pad = true;  ///< average only: padding counts in the divisor, as in PyTorch

  friend bool operator==(const PoolGeometry&, const PoolGeometry&) = default;
};

Shape pool_output_shape(const Shape& x, const PoolGeometry& geometry);

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

/// x [N, spatial..., C] gives [N, spatial'..., C], where spatial' = floor(spatial * scale_factor). Throws ShapeError
/// for another rank, and for a scale factor that makes an extent 0 or 2^31 and more.
Shape upsample_output_shape(const Shape& x, const UpsampleGeometry& geometry);

}  // namespace lockstep::kernels
