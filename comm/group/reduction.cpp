// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction.h"

#include <algorithm>
#include <utility>

namespace lockstep::comm {

Reduction reduction_of(const Operation& operation, std::vector<float> premultiply) {
  using kernels::RankReduction;
  const double factor = operation.reduce == ReduceOp::kAverage ? 1.0 / static_cast<double>(premultiply.size()) : 1.0;
  return {operation.reduce == ReduceOp::kMax ? RankReduction::kMax : RankReduction::kSum, operation.dtype,
          std::move(premultiply), factor};
}

Reduction reduction_of(const Operation& operation, std::span<const Operation> operations) {
  std::vector<float> premultiply;
  for (const Operation& each : operations) premultiply.push_back(each.premultiply);
  return reduction_of(operation, std::move(premultiply));
}

void reduce(const Reduction& reduction, std::span<const void* const> sources, std::span<void* const> outputs,
            std::int64_t count) {
  kernels::rank_reduce(reduction.kind, reduction.dtype, count, sources, reduction.premultiply, reduction.factor,
                       outputs);
}

Range part_of(std::int64_t count, int index, int parts, DType dtype) {
  const std::int64_t line = 64 / static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t lines = (count + line - 1) / line;
  const auto bound = [&](int i) { return std::min(lines * i / parts * line, count); };
  return {bound(index), bound(index + 1)};
}

}  // namespace lockstep::comm
