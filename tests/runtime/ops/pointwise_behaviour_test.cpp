// SPDX-License-Identifier: Apache-2.0
// What functions of one, two and three numbers promise beside their values.
#include <gmock/gmock.h>

#include <limits>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::values_of;
using lockstep::devices::device;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor floats(const std::vector<float>& values, const Shape& shape) { return Tensor::from(values, shape).to(device()); }
Tensor leaf(const std::vector<float>& values, const Shape& shape) {
  const Tensor x = floats(values, shape);
  x.set_requires_grad(true);
  return x;
}

TEST(Pointwise, AutocastRunsEachFunctionAsItsListSays) {
  const Tensor half = full({3}, 0.5, {DType::kFloat16, device()}), whole = full({3}, 0.5, {DType::kFloat32, device()});
  const amp::Autocast autocast(DType::kFloat16);
  for (const auto function : {exp, log, rsqrt, reciprocal, tan, cosh, asin}) {
    EXPECT_EQ(function(half).dtype(), DType::kFloat32);
  }
  EXPECT_EQ(softplus(half).dtype(), DType::kFloat32);
  EXPECT_EQ(pow(half, 2).dtype(), DType::kFloat32);
  EXPECT_EQ(pow(half, half).dtype(), DType::kFloat32);
  for (const auto function : {neg, abs, sqrt, sin, cos, erf, silu}) EXPECT_EQ(function(half).dtype(), DType::kFloat16);
  EXPECT_EQ(prelu(whole, whole).dtype(), DType::kFloat16);
  EXPECT_EQ(div(half, whole).dtype(), DType::kFloat32);
  EXPECT_EQ(where(gt(half, 0), half, whole).dtype(), DType::kFloat32);
  EXPECT_EQ((half * 2).dtype(), DType::kFloat16);
}

TEST(Pointwise, OperandsOfDifferentDtypesArePromotedWithoutAutocastToo) {
  const Tensor half = full({3}, 0.5, {DType::kFloat16, device()}), whole = full({3}, 0.5, {DType::kFloat32, device()});
  for (const auto& y : {pow(half, whole), pow(whole, half), prelu(half, whole), maximum(half, whole), half / whole,
                        lerp(half, half, whole), addcmul(whole, half, half), clamp(half, whole, whole)}) {
    EXPECT_EQ(y.dtype(), DType::kFloat32);
  }
}

TEST(Pointwise, EqualElementsShareTheGradientOfTheLarger) {
  const Tensor a = leaf({1, 2, 3}, {3}), b = leaf({2, 2, 2}, {3});
  for (const auto function : {maximum, minimum}) {
    const std::vector<Tensor> grads = autograd::grad(sum(function(a, b)), {a, b});
    EXPECT_EQ(grads[0].item(1), 0.5);
    EXPECT_EQ(grads[1].item(1), 0.5);
    EXPECT_EQ(grads[0].item(0) + grads[1].item(0), 1);
    EXPECT_EQ(grads[0].item(2) + grads[1].item(2), 1);
  }
  EXPECT_EQ(autograd::grad(sum(maximum(a, b)), {a}).front().item(2), 1);
  EXPECT_EQ(autograd::grad(sum(minimum(a, b)), {a}).front().item(0), 1);
}

TEST(Pointwise, PowersHaveTheirLimits) {
  const Tensor zero = leaf({0}, {1}), two = leaf({2}, {1});
  const std::vector<Tensor> grads = autograd::grad(pow(zero, two), {zero, two}, ones_like(two));
  EXPECT_EQ(grads[0].item(), 0);
  EXPECT_EQ(grads[1].item(), 0);
  EXPECT_EQ(pow(zero, 0).item(), 1);
  EXPECT_EQ(autograd::grad(sum(pow(zero, 0)), {zero}).front().item(), 0);
  EXPECT_EQ(autograd::grad(sum(pow(0, two)), {two}).front().item(), 0);
  EXPECT_TRUE(std::isnan(pow(floats({-2}, {1}), 0.5).item()));
  EXPECT_EQ(pow(floats({-2}, {1}), 3).item(), -8);
}

TEST(Pointwise, WhatWhereDoesNotChooseHasNoInfluence) {
  const Tensor x = leaf({-1, 4}, {2});
  const Tensor y = where(gt(x, 0), sqrt(x), 0);
  EXPECT_THAT(values_of(y), ElementsAre(0, 2));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = leaf({nan, 1}, {2}), b = leaf({2, nan}, {2});
  const Tensor chosen = where(lt(floats({1, -1}, {2}), 0), a, b);
  EXPECT_THAT(values_of(chosen), ElementsAre(2, 1));
  const std::vector<Tensor> grads = autograd::grad(sum(chosen), {a, b});
  EXPECT_THAT(values_of(grads[0]), ElementsAre(0, 1));
  EXPECT_THAT(values_of(grads[1]), ElementsAre(1, 0));
}

TEST(Pointwise, ClampHasNoSlopeAtItsEnds) {
  const Tensor x = floats({0, 0.5, 1}, {3});
  x.set_requires_grad(true);
  EXPECT_THAT(values_of(autograd::grad(sum(clamp(x, 0, 1)), {x}).front()), ElementsAre(0, 1, 0));
}

TEST(Pointwise, ClampKeepsNaN) {
  EXPECT_TRUE(std::isnan(clamp(floats({std::numeric_limits<float>::quiet_NaN()}, {1}), 0, 1).item()));
}

TEST(Pointwise, WhatEqualsABoundSharesTheGradientWithIt) {
  const Tensor x = leaf({-2, -1, 0, 1, 2}, {5}), low = leaf({-1}, {1}), high = leaf({1}, {1});
  const std::vector<Tensor> grads = autograd::grad(sum(clamp(x, low, high)), {x, low, high});
  EXPECT_THAT(values_of(grads[0]), ElementsAre(0, 0.5, 1, 0.5, 0));  // PyTorch's
  EXPECT_EQ(grads[1].item(), 1.5);
  EXPECT_EQ(grads[2].item(), 1.5);
}

TEST(Pointwise, PreluKeepsTheShapeWhateverTheRankOfItsWeight) {
  for (const Shape& shape : {Shape{1, 2}, Shape{2}, Shape{}}) {
    const Tensor x = full(shape, -2, {DType::kFloat32, device()}), weight = leaf({0.5}, {1, 1, 1, 1});
    const Tensor y = prelu(x, weight);
    EXPECT_EQ(y.shape(), shape);
    EXPECT_THAT(values_of(y), Each(-1));
    const Tensor dweight = autograd::grad(sum(y), {weight})[0];
    EXPECT_EQ(dweight.shape(), weight.shape());
    EXPECT_EQ(dweight.item(), -2.0 * static_cast<double>(shape.numel()));
  }
}

TEST(Pointwise, BroadcastParameterCollectsItsSum) {
  // In leaves of every shape that broadcasts to [2, 3].
  for (const Shape& shape : {Shape{3}, Shape{2, 1}, Shape{1, 3}, Shape{}, Shape{1, 1}}) {
    SCOPED_TRACE(shape.str());
    const Tensor w = full(shape, 2, {DType::kFloat32, device()});
    w.set_requires_grad(true);
    const Tensor x = floats({1, 1, 1, 1, 1, 1}, {2, 3});
    sum(x * w).backward();
    sum(x * w).backward();
    EXPECT_EQ(w.grad().shape(), shape);
    EXPECT_THAT(values_of(w.grad()), Each(2.0 * 6 / static_cast<double>(shape.numel())));
  }
}

TEST(Pointwise, ErrorsNameTheFunctionAndWhatDoesNotFit) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3}), pair = floats({1, 2}, {2});
  EXPECT_THAT([&] { sub(x, pair); },
              ThrowsMessage<ShapeError>(::testing::AllOf(HasSubstr("sub"), HasSubstr("[2, 3]"))));
  EXPECT_THAT([&] { lt(x, pair); }, ThrowsMessage<ShapeError>(HasSubstr("lt")));
  EXPECT_THAT([&] { where(gt(pair, 0), x, x); }, ThrowsMessage<ShapeError>(HasSubstr("where")));
  EXPECT_THAT([&] { prelu(x, pair); }, ThrowsMessage<ShapeError>(HasSubstr("[channels]")));
  EXPECT_THAT([&] { softplus(x, 0); }, ThrowsMessage<UsageError>(HasSubstr("beta")));
  EXPECT_THAT([&] { clamp(x, 2, 1); }, ThrowsMessage<UsageError>(HasSubstr("clamp")));
  EXPECT_THAT([&] { sum_to(x, {2}); }, ThrowsMessage<ShapeError>(HasSubstr("[2]")));
}

TEST(Pointwise, RefusesIntegersBesideFloatingTensorsAndInFunctions) {
  const Tensor classes = Tensor::from<std::int64_t>({1, 2}, {2}), x = Tensor::from<float>({1, 2}, {2});
  EXPECT_THAT([&] { eq(classes, x); }, ThrowsMessage<ShapeError>(HasSubstr("int64")));
  EXPECT_THAT([&] { (void)(x + classes); }, ThrowsMessage<ShapeError>(HasSubstr("int64")));
  EXPECT_THAT([&] { where(x, x, x); }, ThrowsMessage<ShapeError>(HasSubstr("bool")));
  EXPECT_THAT([&] { exp(classes); }, ThrowsMessage<ShapeError>(HasSubstr("int64")));
  EXPECT_THAT([&] { uniform({2}, {}, {}, {DType::kInt32}); }, ThrowsMessage<ShapeError>(HasSubstr("int32")));
}

}  // namespace
}  // namespace lockstep::ops
