// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// x [N, spatial..., C] -> [N, spatial'..., C]; geometry.kind says which.
[[nodiscard]] Tensor pool(const Tensor& x, const PoolGeometry& geometry);
/// x [N, spatial..., C] -> [N, C], the mean over the spatial dimensions.
[[nodiscard]] Tensor global_average_pool(const Tensor& x);

}  // namespace lockstep::ops
