// SPDX-License-Identifier: Apache-2.0
// Rolled, padded and triangular tensors.
#include <gmock/gmock.h>

#include <limits>

#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using ops::testing::Accuracy;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ::testing::ElementsAre;

class PaddingTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, PaddingTest, kAllTypes, name_of_on);

Tensor counted(const Shape& shape, DType dtype = DType::kFloat32) {
  return arange(shape.numel(), {DType::kFloat32, device()}).to(dtype).reshaped(shape);
}

TEST_P(PaddingTest, Roll) {
  for (const int dim : {0, 1, -1}) {
    check([&](const auto& in) { return roll(in[0], 2, dim); }, {random({2, 3, 4}, 1)});
  }
}

TEST_P(PaddingTest, PadInEveryMode) {
  // An element that stands in several places adds up their gradients, each of a slice of its own.
  for (const PadMode mode : {PadMode::kConstant, PadMode::kReflect, PadMode::kReplicate, PadMode::kCircular}) {
    check([&](const auto& in) { return pad(in[0], 1, 2, 1, {.mode = mode, .value = 0.5}); }, {random({2, 3, 2}, 1)},
          {.terms = 4, .intermediate = 4});
  }
}

TEST_P(PaddingTest, Triangles) {
  for (const std::int64_t diagonal : {-1, 0, 2}) {
    check([&](const auto& in) { return tril(in[0], diagonal); }, {random({2, 3, 4}, 1)});
    check([&](const auto& in) { return triu(in[0], diagonal); }, {random({4, 3}, 2)});
  }
}

TEST_P(PaddingTest, Glu) {
  // The sigmoid and its derivative are rounded on the way.
  for (const int dim : {0, -1}) {
    check([&](const auto& in) { return glu(in[0], dim); }, {random({4, 6}, 1)}, {.intermediate = 2});
  }
}

TEST_P(PaddingTest, Cross) {
  // Both products of a component are rounded before they are subtracted, and so are their gradients.
  const Accuracy two_products{.terms = 2, .intermediate = 4, .intermediate_of_result = 2};
  check([](const auto& in) { return cross(in[0], in[1]); }, {random({2, 3}, 1), random({2, 3}, 2)}, two_products);
  check([](const auto& in) { return cross(in[0], in[1], 0); }, {random({3, 2}, 1), random({3, 1}, 2)},
        {.terms = 4, .intermediate = 8, .intermediate_of_result = 2});
}

TEST(Padding, GivesWhatItsModeSays) {
  const Tensor x = counted({3});
  const auto padded = [&x](PadMode mode, double value = 0) { return values_of(pad(x, 0, 2, 1, {mode, value})); };
  EXPECT_THAT(padded(PadMode::kConstant, 9), ElementsAre(9, 9, 0, 1, 2, 9));
  EXPECT_THAT(padded(PadMode::kReflect), ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(padded(PadMode::kReplicate), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(padded(PadMode::kCircular), ElementsAre(1, 2, 0, 1, 2, 0));
  EXPECT_THAT(values_of(pad(counted({2}, DType::kInt64), 0, 0, 2, {.value = -100})), ElementsAre(0, 1, -100, -100));
  EXPECT_EQ(pad(Tensor::zeros({0, 2}, DType::kFloat32, device()), 0, 1, 0).shape(), (Shape{1, 2}));
}

TEST(Padding, RefusesWhatADimensionCannotGive) {
  const Tensor x = counted({3}), none = Tensor::zeros({0}, DType::kFloat32, device());
  EXPECT_THROW((void)pad(x, 0, -1, 0), ShapeError);
  EXPECT_THROW((void)pad(x, 0, 3, 0, {.mode = PadMode::kReflect}), ShapeError);
  EXPECT_THROW((void)pad(x, 0, 0, 4, {.mode = PadMode::kCircular}), ShapeError);
  EXPECT_THROW((void)pad(none, 0, 1, 0, {.mode = PadMode::kReplicate}), ShapeError);
  EXPECT_THROW((void)pad(x, 1, 1, 1), ShapeError);
  EXPECT_THROW((void)pad(sum(x), 0, 1, 1), ShapeError);
  EXPECT_THROW((void)pad({}, 0, 1, 1), UsageError);
}

TEST(Rolling, GoesEitherWayAndAround) {
  const Tensor x = counted({4});
  EXPECT_THAT(values_of(roll(x, 1, 0)), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(values_of(roll(x, -1, 0)), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(values_of(roll(x, 9, 0)), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(values_of(roll(counted({3}, DType::kInt32), 1, 0)), ElementsAre(2, 0, 1));
  EXPECT_EQ(roll(Tensor::zeros({0}, DType::kFloat32, device()), 1, 0).numel(), 0);
  EXPECT_THROW((void)roll(x, 1, 1), ShapeError);
}

TEST(Triangles, KeepWhatLiesOnTheirSideOfTheDiagonal) {
  const Tensor x = counted({2, 3});
  EXPECT_THAT(values_of(tril(x)), ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(values_of(tril(x, 1)), ElementsAre(0, 1, 0, 3, 4, 5));
  EXPECT_THAT(values_of(triu(x)), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(values_of(triu(x, 1)), ElementsAre(0, 1, 2, 0, 0, 5));
  const Tensor bad = full({2, 2}, std::numeric_limits<double>::quiet_NaN(), {DType::kFloat32, device()});
  EXPECT_EQ(tril(bad).item(1), 0) << "what is dropped has no influence";
  EXPECT_THROW((void)tril(counted({3})), ShapeError);
}

TEST(Glu, NeedsTwoHalvesAndCrossThreeNumbers) {
  EXPECT_THROW((void)glu(counted({3})), ShapeError);
  EXPECT_THROW((void)glu(sum(counted({3}))), ShapeError);
  EXPECT_THAT(values_of(cross(counted({3}), full({3}, 1, {DType::kFloat32, device()}))), ElementsAre(-1, 2, -1));
  EXPECT_THROW((void)cross(counted({2}), counted({2})), ShapeError);
  EXPECT_THROW((void)cross(counted({3, 2}), counted({3}), 0), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
