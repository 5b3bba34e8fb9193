// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "comm/group/reduction.h"

namespace lockstep::comm {

// A sum of 16-bit numbers that is not rounded between two of its parts.

/// sum = the reduction of `count` elements of each source, float16 or bfloat16, in float32 and not rounded.
void reduce_wide(const Reduction& reduction, std::span<const std::byte* const> sources, std::int64_t count, float* sum);

/// Rounds `count` sums to `dtype`, float16 or bfloat16, into every output.
void round_wide(const float* sum, DType dtype, std::int64_t count, std::span<std::byte* const> outputs);

}  // namespace lockstep::comm
