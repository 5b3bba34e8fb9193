// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/rank_reduce.h"

#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/cpu/loops/loops.h"

namespace lockstep::kernels {

// Runs on the calling thread alone. That is the communication's; the other cores are busy with the backward pass.
void rank_reduce(RankReduction reduction, DType dtype, std::int64_t count, std::span<const void* const> sources,
                 std::span<const float> premultiply, double factor, std::span<void* const> outputs) {
  if (!is_floating(dtype) && dtype != DType::kInt32 && dtype != DType::kInt64) {
    throw ShapeError("rank_reduce: expected a floating dtype, int32 or int64, found " + std::string(name_of(dtype)));
  }
  if (sources.empty() || premultiply.size() != sources.size()) {
    throw ShapeError("rank_reduce: expected one factor for each of at least one source, found " +
                     std::to_string(premultiply.size()) + " factors for " + std::to_string(sources.size()) +
                     " sources");
  }
  cpu::loops().rank_reduce(reduction, dtype, count, sources, premultiply, factor, outputs);
}

}  // namespace lockstep::kernels
