// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/operators.h"

#include <gmock/gmock.h>

#include <limits>

#include "runtime/autograd/grad_mode.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::ElementsAre;

/// A line of numbers on the device.
Tensor line(const std::vector<double>& values, DType dtype) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(dtype).to(device());
}

class IntegersTest : public ops::testing::OperationTest {
 protected:
  static Tensor line(const std::vector<double>& values, DType dtype) {
    return Tensor::from(values, {static_cast<std::int64_t>(values.size())}).to(dtype).to(device());
  }
};
INSTANTIATE_TEST_SUITE_P(On, IntegersTest, ops::testing::kAllTypes, ops::testing::name_of_on);

TEST(OperatorsInPlace, WriteToTheTensorItself) {
  const Tensor a = line({1, 2, 3, 4}, DType::kFloat32).reshaped({2, 2});
  const std::uint64_t version = a.version();
  a += 1;
  a -= line({1, 2}, DType::kFloat32);
  a *= a;
  a /= 2;
  EXPECT_THAT(values_of(a), ElementsAre(0.5, 0.5, 4.5, 4.5));
  EXPECT_GT(a.version(), version);
  a[1] += a[0];
  EXPECT_THAT(values_of(a), ElementsAre(0.5, 0.5, 5, 5));
}

TEST(OperatorsInPlace, KeepTheDtype) {
  const Tensor half = full({2}, 0.5, {DType::kFloat16, device()});
  half += line({1, 2}, DType::kFloat32);
  EXPECT_EQ(half.dtype(), DType::kFloat16);
  EXPECT_THAT(values_of(half), ElementsAre(1.5, 2.5));
  const Tensor counts = line({1, 2}, DType::kInt64);
  counts += line({1, 0}, DType::kBool);
  EXPECT_THAT(values_of(counts), ElementsAre(2, 2));
  EXPECT_THROW(counts /= 2, UsageError) << "a quotient is no integer";
}

TEST(OperatorsInPlace, AreRefusedWhereAGraphWouldBreak) {
  const Tensor leaf = line({1, 2}, DType::kFloat32);
  leaf.set_requires_grad(true);
  EXPECT_THROW(leaf += 1, UsageError);
  const Tensor result = leaf * 2;
  EXPECT_THROW(result += 1, UsageError);
  {
    const autograd::NoGrad no_grad;
    leaf += 1;
  }
  EXPECT_THAT(values_of(leaf), ElementsAre(2, 3));
  EXPECT_THROW(line({1}, DType::kFloat32) += line({1, 2}, DType::kFloat32), ShapeError) << "the result does not fit";
}

TEST_P(IntegersTest, AddSubtractMultiplyAndCompareToIntegers) {
  const Tensor a = line({1, -2, 3}, DType::kInt64), b = line({2, -2, -5}, DType::kInt64);
  EXPECT_THAT(values_of(a + b), ElementsAre(3, -4, -2));
  EXPECT_THAT(values_of(a - b), ElementsAre(-1, 0, 8));
  EXPECT_THAT(values_of(a * b), ElementsAre(2, 4, -15));
  EXPECT_THAT(values_of(10 - a * 2 + 1), ElementsAre(9, 15, 5));
  EXPECT_THAT(values_of(maximum(a, b)), ElementsAre(2, -2, 3));
  EXPECT_THAT(values_of(minimum(a, b)), ElementsAre(1, -2, -5));
  for (const Tensor& result : {a + b, a - 1, 1 - a, a * b, minimum(a, b)}) EXPECT_EQ(result.dtype(), DType::kInt64);
  EXPECT_THAT(values_of(eq(a, b)), ElementsAre(0, 1, 0));
  EXPECT_THAT(values_of(lt(a, b)), ElementsAre(1, 0, 0));
  EXPECT_THAT(values_of(ge(a, 1)), ElementsAre(1, 0, 1));
  EXPECT_THAT(values_of(gt(a, 0.5)), ElementsAre(1, 0, 1));
}

TEST_P(IntegersTest, TakeTheWiderDtypeAndStayInItsRange) {
  const Tensor bytes = line({200, 3}, DType::kInt64).to(DType::kUInt8),
               words = line({-100, 7}, DType::kInt64).to(DType::kInt32);
  EXPECT_EQ((bytes + words).dtype(), DType::kInt32);
  EXPECT_THAT(values_of(bytes + words), ElementsAre(100, 10));
  EXPECT_THAT(values_of(bytes + bytes), ElementsAre(255, 6));
  const Tensor large = line({0x1p52 + 1}, DType::kInt64);
  EXPECT_EQ((large * 2 - 2).item(), 0x1p53);
}

TEST_P(IntegersTest, OfBoolCount) {
  const Tensor a = line({1, 0, 1}, DType::kBool), b = line({1, 1, 0}, DType::kBool);
  EXPECT_EQ((a + b).dtype(), DType::kBool);
  EXPECT_THAT(values_of(a + b), ElementsAre(1, 1, 1)) << "or, as in PyTorch";
  EXPECT_THAT(values_of(a * b), ElementsAre(1, 0, 0)) << "and";
  EXPECT_THAT(values_of(ne(a, b)), ElementsAre(0, 1, 1));
  EXPECT_EQ((a + 1).dtype(), DType::kInt64);
  EXPECT_THAT(values_of(a + 1), ElementsAre(2, 1, 2));
  EXPECT_THROW((void)(a - b), UsageError);
}

TEST_P(IntegersTest, DivideToFloats) {
  const Tensor a = line({1, -3}, DType::kInt64), b = line({2, 2}, DType::kInt64);
  for (const Tensor& quotient : {a / b, a / 2, 1 / b}) EXPECT_EQ(quotient.dtype(), DType::kFloat32);
  EXPECT_THAT(values_of(a / b), ElementsAre(0.5, -1.5));
  EXPECT_THAT(values_of(1 / b), ElementsAre(0.5, 0.5));
}

TEST_P(IntegersTest, AndAFractionAreRefused) {
  EXPECT_THROW((void)(line({1}, DType::kInt64) + 0.5), UsageError);
  EXPECT_THROW((void)(line({1}, DType::kInt64) * 1.5), UsageError);
  EXPECT_THROW((void)(line({1}, DType::kInt64) + std::numeric_limits<double>::infinity()), UsageError);
  EXPECT_THROW((void)(line({1}, DType::kInt64) + std::numeric_limits<double>::quiet_NaN()), UsageError);
  EXPECT_THROW((void)(0.25 - line({1}, DType::kInt64)), UsageError);
  EXPECT_THROW((void)(line({1}, DType::kInt64) + line({1}, DType::kFloat32)), Error);
}

TEST_P(IntegersTest, GiveTheAccuracyOfAModel) {
  const Tensor logits = line({1, 3, 2, 0, 5, 1}, DType::kFloat32).reshaped({2, 3});
  const Tensor hits = eq(argmax(logits, 1), line({1, 2}, DType::kInt64));
  EXPECT_EQ(mean(hits.to(DType::kFloat32)).item(), 0.5);
}

}  // namespace
}  // namespace lockstep::ops
