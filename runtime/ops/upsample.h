// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

// PyTorch's interpolate(): x [N, spatial..., C] of 1 to 3 spatial dimensions at other extents. Under autocast in
// float32, as every upsampling of PyTorch.

namespace lockstep::ops {

/// Resamples x to the given spatial extents.
[[nodiscard]] Tensor upsample(const Tensor& x, const std::vector<std::int64_t>& extents,
                              UpsampleMode mode = UpsampleMode::kNearest, bool align_corners = false);
/// Resamples x to spatial * scale_factor, rounded down; one factor for all dimensions or one for each. The pixels are
/// placed by the factor, not by the quotient of the extents (PyTorch's recompute_scale_factor=False).
[[nodiscard]] Tensor upsample_by(const Tensor& x, const std::vector<double>& scale_factor,
                                 UpsampleMode mode = UpsampleMode::kNearest, bool align_corners = false);

}  // namespace lockstep::ops
