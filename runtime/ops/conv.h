// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// x [N, spatial..., C], weight [O, kernel..., C / groups], bias [O] or undefined -> [N, spatial'..., O], for 1 to 3
/// spatial dimensions.
[[nodiscard]] Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry);

/// Transposed convolution: the gradient of a convolution with this geometry by its input. x [N, spatial..., C], weight
/// [C, kernel..., O / groups], bias [O] or undefined -> [N, spatial'..., O], kernels::conv_transpose_output_shape().
/// The weight is laid out as that convolution's: PyTorch's [C, O / groups, kernel...] with its second dimension last.
/// Takes every output_padding below the stride. PyTorch also takes larger ones below the dilation; no convolution has
/// such a gradient. The bias is added in a second pass, to y as already rounded to y's dtype.
[[nodiscard]] Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const ConvGeometry& geometry,
                                    const std::array<std::int64_t, 3>& output_padding = {});

}  // namespace lockstep::ops
