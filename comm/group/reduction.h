// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "comm/group/operation.h"
#include "runtime/kernels/rank_reduce.h"

namespace lockstep::comm {

/// The arithmetic of a reduction over a group's ranks, in its order.
struct Reduction {
  kernels::RankReduction kind;
  DType dtype;
  std::vector<float> premultiply;  ///< one for each rank
  double factor;
};

/// That of an all_reduce or reduce_scatter.
Reduction reduction_of(const Operation& operation, std::vector<float> premultiply);

/// out = reduction of `count` elements of each source. `out` may be one of them.
void reduce(const Reduction& reduction, std::span<const void* const> sources, void* out, std::int64_t count);

}  // namespace lockstep::comm
