// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/tensor/tensor.h"

namespace lockstep::kernels {

enum class RankReduction { kSum, kMax };

/// The arithmetic of an all-reduce: for every element i, in the order of `sources`,
///   result = factor * sum_r premultiply[r] * sources[r][i]   (kSum)   or   max_r sources[r][i]   (kMax),
/// in float32 (float64 for float64; integers exactly, factor and premultiply ignored), rounded once to `dtype` and
/// written to every one of `outputs`, which may alias sources element by element. `count` elements of `dtype`
/// (floating, int32 or int64); a NaN in any source gives NaN. One pass over memory.
void rank_reduce(RankReduction reduction, DType dtype, std::int64_t count, std::span<const void* const> sources,
                 std::span<const float> premultiply, double factor, std::span<void* const> outputs);

}  // namespace lockstep::kernels
