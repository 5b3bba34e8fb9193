// SPDX-License-Identifier: Apache-2.0
#include "comm/group/reduction_plan.h"

#include <gmock/gmock.h>

#include "runtime/tensor/half.h"

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
      EXPECT_EQ(plain.factor, scaled.factor);
      EXPECT_EQ(plain.after, scaled.after);
      EXPECT_EQ(plain.before, 1.0);
      EXPECT_EQ(scaled.before, static_cast<double>(0.3f));
    }
  }
}

TEST(ReductionPlan, AnAverageIsTheLibrarysWhereTheDtypeHoldsItsFactor) {
  for (const int size : {1, 2, 4, 8, 1024}) {
    EXPECT_EQ(plan_reduction(DType::kFloat16, ReduceOp::kAverage, 1.0f, size).op, Operator::kAverage);
  }
  EXPECT_EQ(plan_reduction(DType::kFloat32, ReduceOp::kAverage, 1.0f, 3).op, Operator::kAverage);
}

TEST(ReductionPlan, AnAverageIn16BitsIsNeitherBiasedNorOverflows) {
  for (const int size : {3, 5, 6, 7, 9, 1000}) {
    const ReductionPlan plan = plan_reduction(DType::kBFloat16, ReduceOp::kAverage, 1.0f, size);
    ASSERT_EQ(plan.op, Operator::kPremultipliedSum);
    EXPECT_EQ(static_cast<float>(BFloat16(plan.factor)), plan.factor);
    EXPECT_EQ(static_cast<float>(Half(plan.factor)), plan.factor);
    EXPECT_LE(static_cast<double>(plan.factor) * size, 1.0);
    EXPECT_NEAR(static_cast<double>(plan.factor) * plan.after * size, 1.0, 1e-12);
  }
}

}  // namespace
}  // namespace lockstep::comm
