// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// How an element between others is made of them.
enum class GridMode : std::uint8_t {
  kLinear,   ///< PyTorch's "bilinear", also of lines and volumes
  kNearest,  ///< the nearest one; of two, the one at the even place
  kCubic,    ///< PyTorch's "bicubic", of images: the convolution with a = -0.75
};
/// The elements that are taken beyond the borders.
enum class GridPadding : std::uint8_t {
  kZeros,
  kBorder,      ///< the outermost element
  kReflection,  ///< the elements mirrored at the border
};
struct GridOptions {
  GridMode mode = GridMode::kLinear;
  GridPadding padding = GridPadding::kZeros;
  /// -1 and 1 are the centres of the outermost elements; otherwise their outer edges.
  bool align_corners = false;
};

/// PyTorch's grid_sample: x [N, spatial..., C] of 2 or 3 spatial dimensions at the points of grid [N, spatial'..., 2 or
/// 3] -> [N, spatial'..., C]. A point's coordinates are those of the last spatial dimension first, (x, y) or (x, y, z),
/// from -1 to 1 over the input. A point with a NaN gives NaN. Gradients flow to x and to the grid, whose are 0 where
/// the mode is kNearest or a border holds the point. Floating dtypes; 16 bits are computed in float32 and rounded once,
/// the dtype of x, promoted with the grid's under autocast, outside of it the same. Throws ShapeError.
[[nodiscard]] Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridOptions& options = {});

}  // namespace lockstep::ops
