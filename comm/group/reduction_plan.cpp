// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction_plan.h"

#include "runtime/base/error.h"

namespace lockstep::comm {

ReductionPlan plan_reduction(DType dtype, ReduceOp op, float premultiply, int size) {
  using Operator = ReductionPlan::Operator;
  if (op == ReduceOp::kMax) return {.op = Operator::kMax};
  const double factor = premultiply;
  if (op == ReduceOp::kSum) return {.factor = factor};
  if (dtype == DType::kFloat64) {
    if (premultiply != 1.0f) throw UsageError("an average of float64 takes no factor here");
    return {.op = Operator::kAverage};
  }
  return {.factor = factor / size};
}

std::optional<ReductionPlan> plan_of_sum(const Communicator& communicator, DType dtype, ReduceOp op,
                                         float premultiply) {
  const auto* const planned = dynamic_cast<const PlannedReductions*>(&communicator);
  if (planned == nullptr) return std::nullopt;
  const ReductionPlan plan = planned->plan(dtype, op, premultiply);
  return plan.op == ReductionPlan::Operator::kSum ? std::optional(plan) : std::nullopt;
}

}  // namespace lockstep::comm
