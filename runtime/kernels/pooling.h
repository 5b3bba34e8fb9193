// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

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

/// x [N, spatial..., C].
struct Pooling {
  /// `indices` (int32, y's shape) receives for max pooling each maximum's offset in its image's spatial extents (the
  /// first one on ties; NaN wins); undefined for average pooling.
  void (*pool_forward)(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices);
  void (*pool_backward)(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx);
  /// y [N, C] = mean of x over its spatial dimensions.
  void (*global_average_pool)(const Tensor& x, const Tensor& y);
  void (*global_average_pool_backward)(const Tensor& dy, const Tensor& dx);
};

}  // namespace lockstep::kernels
