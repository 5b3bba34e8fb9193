// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/tensor/tensor.h"

// Windows of a tensor as elements of their own, copied. Where windows overlap the gradients of an element's copies are
// added up, in a fixed order.

namespace lockstep::ops {

/// PyTorch's Tensor.unfold: the windows of `size` elements along a dimension, one every `step` elements. The
/// dimension's extent becomes the number of windows that fit; the elements of a window are a new last dimension. Any
/// dtype. Throws ShapeError for size < 1, step < 1 and where no window fits.
[[nodiscard]] Tensor unfold(const Tensor& x, int dim, std::int64_t size, std::int64_t step);

/// Extents of a window and how it moves, of one number for each spatial dimension; `stride`, `padding` and `dilation`
/// may be left out.
struct UnfoldOptions {
  std::vector<std::int64_t> window = {};
  std::vector<std::int64_t> stride = {};    ///< 1
  std::vector<std::int64_t> padding = {};   ///< 0: zeros on both sides
  std::vector<std::int64_t> dilation = {};  ///< 1
};
/// PyTorch's nn.functional.unfold, im2col: x [N, spatial..., C] of 1 to 3 spatial dimensions -> [N, windows, elements
/// of a window * C]. Windows and elements are in the order of memory, channels last, so that the product with a
/// convolution's weight [O, kernel..., C] as [O, kernel * C] is that convolution. Throws ShapeError for what conv()
/// refuses.
[[nodiscard]] Tensor unfold(const Tensor& x, const UnfoldOptions& options);

}  // namespace lockstep::ops
