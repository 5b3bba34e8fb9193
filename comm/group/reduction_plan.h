// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "comm/group/communicator.h"

namespace lockstep::comm {

/// How a library that reduces in the data's own dtype comes closest to Communicator's reductions.
///
/// Such a library holds the factor of an operator in that dtype too: an average over 3 ranks in bfloat16 would multiply
/// by 0.33398, and every gradient would be 0.2 % too long. And NCCL reduces in the network's switches (NVLS) for plain
/// sums and maxima alone. So factors are a pass over the buffer, in float32, and the operator is a plain one. It
/// depends on nothing that may differ between ranks: they all have to use the same.
struct ReductionPlan {
  enum class Operator { kSum, kMax, kAverage };
  Operator op = Operator::kSum;
  double factor = 1.0;  ///< this rank's contribution is multiplied by it first: no sum of 16 bits overflows on the way
};

/// `op` and `premultiply` have passed check_reduction().
ReductionPlan plan_reduction(DType dtype, ReduceOp op, float premultiply, int size);

/// The interface of a communicator whose reductions are such plans. A caller that passes over the buffer before an
/// all_reduce anyway multiplies by the factor there, and asks for ReduceOp::kSum.
class PlannedReductions {
 public:
  virtual ~PlannedReductions() = default;
  virtual ReductionPlan plan(DType dtype, ReduceOp op, float premultiply) const = 0;
};

/// The plan of a communicator that has one and whose operator is a sum.
std::optional<ReductionPlan> plan_of_sum(const Communicator& communicator, DType dtype, ReduceOp op, float premultiply);

}  // namespace lockstep::comm
