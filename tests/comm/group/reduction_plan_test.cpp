// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction_plan.h"

#include <gmock/gmock.h>

namespace lockstep::comm {
namespace {

using Operator = ReductionPlan::Operator;

TEST(ReductionPlan, SumsAndMaximaAreTheLibrarys) {
  EXPECT_EQ(plan_reduction(DType::kFloat32, ReduceOp::kSum, 1.0f, 3).op, Operator::kSum);
  EXPECT_EQ(plan_reduction(DType::kFloat16, ReduceOp::kMax, 1.0f, 3).op, Operator::kMax);
}

TEST(ReductionPlan, AFactorOfARankChangesNoOperator) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    for (const int size : {1, 2, 3, 4, 7, 8}) {
      const ReductionPlan plain = plan_reduction(DType::kBFloat16, op, 1.0f, size);
      const ReductionPlan scaled = plan_reduction(DType::kBFloat16, op, 0.3f, size);
      EXPECT_EQ(plain.op, scaled.op);
      EXPECT_DOUBLE_EQ(scaled.factor, static_cast<double>(0.3f) * plain.factor);
    }
  }
}

/// NCCL reduces in the network's switches for those alone. What was divided before cannot overflow.
TEST(ReductionPlan, AnAverageIsASumOfWhatWasDividedBefore) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int size : {1, 2, 3, 4, 7, 8, 1000, 1024}) {
      const ReductionPlan plan = plan_reduction(dtype, ReduceOp::kAverage, 1.0f, size);
      EXPECT_EQ(plan.op, Operator::kSum);
      EXPECT_EQ(plan.factor, 1.0 / size);
    }
  }
}

TEST(ReductionPlan, ACommunicatorOfTheCpuHasNone) {
  EXPECT_FALSE(plan_of_sum(*make_self_communicator(), DType::kFloat32, ReduceOp::kAverage, 1.0f));
}

}  // namespace
}  // namespace lockstep::comm
