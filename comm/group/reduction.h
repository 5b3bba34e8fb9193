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

/// The reduction of an all_reduce or reduce_scatter.
Reduction reduction_of(const Operation& operation, std::vector<float> premultiply);
/// The reduction over ranks each of which is about to do one of `operations`.
Reduction reduction_of(const Operation& operation, std::span<const Operation> operations);

/// Every output = reduction of `count` elements of each source. Outputs may be sources.
void reduce(const Reduction& reduction, std::span<const void* const> sources, std::span<void* const> outputs,
            std::int64_t count);

/// Elements [begin, end) of `count` that part `index` of `parts` holds: as even as cache lines allow.
struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t count() const { return end - begin; }
};
Range part_of(std::int64_t count, int index, int parts, DType dtype);

}  // namespace lockstep::comm
