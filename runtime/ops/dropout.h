// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::ops {

/// Zeroes elements with probability p and scales the others by 1 / (1 - p). The mask of x [N, ...] depends on the key
/// and on the sample's place in the global batch, `first_sample` being that of row 0: the same for every number of
/// ranks.
[[nodiscard]] Tensor dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_sample);

}  // namespace lockstep::ops
