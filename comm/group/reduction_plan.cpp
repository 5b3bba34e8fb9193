// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction_plan.h"

#include <bit>

namespace lockstep::comm {

ReductionPlan plan_reduction(DType dtype, ReduceOp op, float premultiply, int size) {
  using Operator = ReductionPlan::Operator;
  if (op == ReduceOp::kMax) return {.op = Operator::kMax};
  ReductionPlan plan{.before = static_cast<double>(premultiply)};
  if (op == ReduceOp::kSum) return plan;
  const auto ranks = static_cast<unsigned>(size);
  const bool narrow = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (!narrow || std::has_single_bit(ranks)) {
    plan.op = Operator::kAverage;
    return plan;
  }
  // Divided by more than the ranks first, so that a sum cannot overflow on the way, and by less than 2 too much.
  const auto divisor = static_cast<float>(std::bit_ceil(ranks));
  plan.op = Operator::kPremultipliedSum;
  plan.factor = 1.0f / divisor;
  plan.after = static_cast<double>(divisor) / static_cast<double>(size);
  return plan;
}

}  // namespace lockstep::comm
