// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction.h"

#include <utility>

namespace lockstep::comm {

Reduction reduction_of(const Operation& operation, std::vector<float> premultiply) {
  using kernels::RankReduction;
  const double factor = operation.reduce == ReduceOp::kAverage ? 1.0 / static_cast<double>(premultiply.size()) : 1.0;
  return {operation.reduce == ReduceOp::kMax ? RankReduction::kMax : RankReduction::kSum, operation.dtype,
          std::move(premultiply), factor};
}

void reduce(const Reduction& reduction, std::span<const void* const> sources, void* out, std::int64_t count) {
  kernels::rank_reduce(reduction.kind, reduction.dtype, count, sources, reduction.premultiply, reduction.factor,
                       {&out, 1});
}

}  // namespace lockstep::comm
