// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/communicator.h"

namespace lockstep::comm {

/// How a library that reduces in the data's own dtype comes closest to Communicator's reductions.
///
/// Such a library holds the factor of an operator in that dtype too: an average over 3 ranks in bfloat16 would multiply
/// by 0.33398, and every gradient would be 0.2 % too long. So what 16 bits cannot hold is a pass over the buffer, in
/// float32. The operator depends on nothing that may differ between ranks: they all have to use the same.
struct ReductionPlan {
  enum class Operator { kSum, kMax, kAverage, kPremultipliedSum };
  Operator op = Operator::kSum;
  double before = 1.0;  ///< this rank's contribution is multiplied by it first
  float factor = 1.0f;  ///< that of kPremultipliedSum, a power of two
  double after = 1.0;   ///< the result is multiplied by it last
};

/// `op` and `premultiply` have passed check_reduction().
ReductionPlan plan_reduction(DType dtype, ReduceOp op, float premultiply, int size);

}  // namespace lockstep::comm
