// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::UpsampleMode;
using kernels::testing::random_tensor;
using lockstep::testing::expect_second_gradients;
using ops::testing::AllTypes;
using ops::testing::OnName;
using ops::testing::OperationTest;

template <class T>
using UpsampleOperations = OperationTest<T>;
TYPED_TEST_SUITE(UpsampleOperations, AllTypes, OnName);

struct Way {
  UpsampleMode mode;
  bool align_corners;
};
constexpr Way kWays[] = {
    {UpsampleMode::kNearest, false}, {UpsampleMode::kLinear, false}, {UpsampleMode::kLinear, true}};

TYPED_TEST(UpsampleOperations, ToExtents) {
  for (const std::int64_t rows : {2, 1, 0}) {
    for (const auto& [mode, align_corners] : kWays) {
      const auto check = [&, mode = mode, align_corners = align_corners](const Shape& shape,
                                                                         const std::vector<std::int64_t>& extents) {
        this->check([&](const auto& in) { return upsample(in[0], extents, mode, align_corners); },
                    {this->random(shape, 1)}, {.terms = 16});
      };
      check({rows, 4, 3}, {7});
      check({rows, 4, 3}, {8});
      check({rows, 4, 3}, {2});
      check({rows, 1, 3}, {3});
      check({rows, 3, 2, 2}, {5, 4});
      check({rows, 2, 3, 2, 2}, {3, 4, 2});
    }
  }
}

TYPED_TEST(UpsampleOperations, ByAFactor) {
  for (const auto& [mode, align_corners] : kWays) {
    const auto check = [&, mode = mode, align_corners = align_corners](const Shape& shape,
                                                                       const std::vector<double>& factors) {
      this->check([&](const auto& in) { return upsample_by(in[0], factors, mode, align_corners); },
                  {this->random(shape, 1)}, {.terms = 16});
    };
    check({2, 5, 3}, {2.3});
    check({2, 3, 4, 2}, {2});
    check({2, 3, 4, 2}, {1.5, 0.6});
  }
  EXPECT_EQ(upsample_by(this->random({1, 5, 4, 2}, 1).to(this->kDevice), {1.5}).shape(), (Shape{1, 7, 6, 2}));
}

TYPED_TEST(UpsampleOperations, UnderAutocastAreFloat32) {
  const Tensor x = this->leaf(this->random({1, 2, 2, 3}, 1));
  const amp::Autocast autocast(DType::kFloat16);
  const Tensor y = upsample(x, {4, 4}, UpsampleMode::kLinear);
  EXPECT_EQ(y.dtype(), this->kWide);
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
