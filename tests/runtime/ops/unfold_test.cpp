// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/unfold.h"

#include <gmock/gmock.h>

#include "tests/runtime/kernels/loops/loops_fixture.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;

class UnfoldTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, UnfoldTest, ops::testing::kAllTypes, ops::testing::name_of_on);

TEST_P(UnfoldTest, WindowsThatOverlapAndThatLeaveElementsOut) {
  const Tensor x = random({2, 7, 3}, 1);
  for (const std::int64_t step : {1, 2, 4}) {
    check([&](const auto& in) { return unfold(in[0], 1, 3, step); }, {x}, {.terms = 3});
    check([&](const auto& in) { return unfold(in[0], -1, 2, step); }, {x}, {.terms = 2});
  }
  check([](const auto& in) { return unfold(in[0], {.window = {3}, .padding = {1}}); }, {x}, {.terms = 3});
  check(
      [](const auto& in) {
        return unfold(in[0], {.window = {2, 2}, .stride = {1, 2}, .dilation = {2, 1}});
      },
      {random({2, 4, 5, 2}, 2)}, {.terms = 4});
}

TEST_P(UnfoldTest, ColumnsTimesTheWeightAreTheConvolution) {
  const kernels::ConvGeometry geometry{
      .spatial_rank = 3, .stride = {1, 2, 1}, .padding = {1, 0, 1}, .dilation = {1, 1, 2}};
  const Tensor x = random_tensor({2, 3, 4, 5, 2}, DType::kFloat32, 1).to(device());
  const Tensor weight = random_tensor({3, 2, 2, 2, 2}, DType::kFloat32, 2).to(device());
  const Tensor expected = conv(x, weight, {}, geometry);
  const Tensor columns =
      unfold(x, {.window = {2, 2, 2}, .stride = {1, 2, 1}, .padding = {1, 0, 1}, .dilation = {1, 1, 2}});
  const Tensor product = linear(columns, reshape(weight, {3, 16}), {});
  const auto found = kernels::testing::values_of(product), wanted = kernels::testing::values_of(expected);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4) << i;
}

TEST(Unfold, TakesIntegers) {
  const Tensor x = Tensor::from<std::int64_t>({1, 2, 3, 4}, {4});
  const Tensor y = unfold(x, 0, 2, 1);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(y.as<std::int64_t>(), ::testing::ElementsAre(1, 2, 2, 3, 3, 4));
}

TEST(Unfold, RefusesWindowsThatDoNotFit) {
  const Tensor x = Tensor::zeros({2, 4, 5, 3}, DType::kFloat32);
  EXPECT_THROW(static_cast<void>(unfold(x, 1, 5, 1)), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, 1, 0, 1)), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, 1, 2, 0)), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, 4, 2, 1)), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, {.window = {5, 1}})), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, {.window = {2}})), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, UnfoldOptions{})), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(x, {.window = {2, 2}, .padding = {-1, 0}})), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(Tensor::zeros({2, 3}, DType::kFloat32), {.window = {1}})), ShapeError);
  EXPECT_THROW(static_cast<void>(unfold(Tensor(), 0, 1, 1)), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
