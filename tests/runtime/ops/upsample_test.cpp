// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::UpsampleMode;
using kernels::testing::random_tensor;
using lockstep::testing::expect_second_gradients;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ops::testing::OperationTest;

using UpsampleOperations = OperationTest;
INSTANTIATE_TEST_SUITE_P(On, UpsampleOperations, kAllTypes, name_of_on);

struct Way {
  UpsampleMode mode;
  bool align_corners;
};
constexpr Way kWays[] = {
    {UpsampleMode::kNearest, false}, {UpsampleMode::kLinear, false}, {UpsampleMode::kLinear, true}};

TEST_P(UpsampleOperations, ToExtents) {
  for (const std::int64_t rows : {2, 1, 0}) {
    for (const auto& [mode, align_corners] : kWays) {
      const auto check_shape = [&, mode = mode, align_corners = align_corners](
                                   const Shape& shape, const std::vector<std::int64_t>& extents) {
        check([&](const auto& in) { return upsample(in[0], extents, mode, align_corners); }, {random(shape, 1)},
              {.terms = 16});
      };
      check_shape({rows, 4, 3}, {7});
      check_shape({rows, 4, 3}, {8});
      check_shape({rows, 4, 3}, {2});
      check_shape({rows, 1, 3}, {3});
      check_shape({rows, 3, 2, 2}, {5, 4});
      check_shape({rows, 2, 3, 2, 2}, {3, 4, 2});
    }
  }
}

TEST_P(UpsampleOperations, ByAFactor) {
  for (const auto& [mode, align_corners] : kWays) {
    const auto check_shape = [&, mode = mode, align_corners = align_corners](const Shape& shape,
                                                                             const std::vector<double>& factors) {
      check([&](const auto& in) { return upsample_by(in[0], factors, mode, align_corners); }, {random(shape, 1)},
            {.terms = 16});
    };
    check_shape({2, 5, 3}, {2.3});
    check_shape({2, 3, 4, 2}, {2});
    check_shape({2, 3, 4, 2}, {1.5, 0.6});
  }
  EXPECT_EQ(upsample_by(random({1, 5, 4, 2}, 1).to(device()), {1.5}).shape(), (Shape{1, 7, 6, 2}));
}

TEST_P(UpsampleOperations, UnderAutocastAreFloat32) {
  const Tensor x = leaf(random({1, 2, 2, 3}, 1));
  const amp::Autocast autocast(DType::kFloat16);
  const Tensor y = upsample(x, {4, 4}, UpsampleMode::kLinear);
  EXPECT_EQ(y.dtype(), wide());
  EXPECT_EQ(autograd::grad(y, {x}, lockstep::testing::output_gradient(y)).front().dtype(), x.dtype());
}

TEST(Upsample, SecondGradients) {
  for (const auto& [mode, align_corners] : kWays) {
    expect_second_gradients(
        [mode = mode, align_corners = align_corners](const auto& in) {
          const Tensor y = upsample(in[0], {4, 3}, mode, align_corners);
          return mul(y, mul(y, y));
        },
        {random_tensor({1, 2, 2, 2}, DType::kFloat64, 1)});
  }
}

TEST(Upsample, RefusesWhatDoesNotFit) {
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  EXPECT_THROW(upsample(zeros({2, 3}), {4}), ShapeError);
  EXPECT_THROW(upsample(zeros({1, 2, 2, 2, 2, 3}), {4, 4, 4, 4}), ShapeError);
  EXPECT_THROW(upsample(zeros({1, 2, 2, 3}), {4}), ShapeError);
  EXPECT_THROW(upsample(zeros({1, 2, 2, 3}), {4, 0}), ShapeError);
  EXPECT_THROW(upsample(zeros({1, 0, 2, 3}), {4, 2}), ShapeError);
  EXPECT_THROW(upsample(zeros({1, 2, 3}), {4}, UpsampleMode::kNearest, true), UsageError);
  EXPECT_THROW(upsample_by(zeros({1, 2, 2, 3}), {2, 2, 2}), ShapeError);
  EXPECT_THROW(upsample_by(zeros({1, 2, 3}), {0.3}), ShapeError);
  EXPECT_THROW(upsample_by(zeros({1, 2, 3}), {-1}), ShapeError);
}

}  // namespace
}  // namespace lockstep::ops
