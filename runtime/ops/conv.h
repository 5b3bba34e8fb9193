// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/backend.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// x [N, spatial..., C], weight [O, kernel..., C / groups], bias [O] or undefined -> [N, spatial'..., O], for 1 to 3
/// spatial dimensions.
Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const kernels::ConvGeometry& geometry);

}  // namespace lockstep::ops
