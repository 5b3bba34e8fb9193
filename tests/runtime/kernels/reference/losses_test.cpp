// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/softmax.h"
#include "tests/runtime/kernels/numeric_gradient.h"
#include "tests/runtime/kernels/tables.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::kernels {
namespace {

using lockstep::testing::numeric_gradient;
using testing::expect_close;
using testing::random_tensor;
using testing::reference_of;
using testing::values_of;

Tensor empty_losses(const Shape& shape) { return Tensor::empty(shape, DType::kFloat64); }
Tensor scalar(double value) { return Tensor::from(std::vector{value}, {}); }

TEST(ReferenceSoftmax, SharesAreProportionalToTheExponentials) {
  const Tensor x = Tensor::from<double>({0, std::log(3), 1000, 1000 + std::log(4)}, {2, 2});
  const Tensor y = empty_losses({2, 2});
  reference_of<Softmax>().softmax(x, false, y);
  expect_close(y, {0.25, 0.75, 0.2, 0.8}, {.relative = 1e-12});
  reference_of<Softmax>().softmax(x, true, y);
  expect_close(y, {std::log(0.25), std::log(0.75), std::log(0.2), std::log(0.8)}, {.relative = 1e-12});
}

TEST(ReferenceSoftmax, MinusInfinityMeansImpossible) {
  const Tensor x = Tensor::from<double>({-INFINITY, 0, -INFINITY, -INFINITY}, {2, 2});
  const Tensor y = empty_losses({2, 2});
  reference_of<Softmax>().softmax(x, false, y);
  expect_close(y, {0, 1, NAN, NAN}, {});
}

TEST(ReferenceSoftmax, HasItsNumericGradient) {
  for (const bool log : {false, true}) {
    const Tensor x = random_tensor({3, 5}, DType::kFloat64, 1, -3, 3);
    const Tensor dy = random_tensor({3, 5}, DType::kFloat64, 2);
    const Tensor y = empty_losses({3, 5}), product = empty_losses({3, 5}), total = empty_losses({}),
                 dx = empty_losses({3, 5});
    const auto loss = [&] {
      reference_of<Softmax>().softmax(x, log, y);
      multiply(y, dy, product);
      reference_of<Reductions>().sum(product, 1, total);
      return total.item();
    };
    const std::vector<double> expected = numeric_gradient(loss, x);
    loss();
    reference_of<Softmax>().softmax_backward(y, log, dy, dx);
    expect_close(dx, expected, {.absolute = 1e-9});
  }
}

TEST(ReferenceCrossEntropy, IsMinusTheLogOfTheTargetsShare) {
  const Tensor logits = Tensor::from<double>({0, std::log(3), std::log(4), 0}, {2, 2});
  const Tensor targets = Tensor::from<std::int64_t>({1, 1}, {2});
  const Tensor loss = empty_losses({}), log_sum_exp = empty_losses({2});
  reference_of<Losses>().cross_entropy(logits, {targets}, 0.5, loss, log_sum_exp);
  expect_close(loss, {-0.5 * (std::log(0.75) + std::log(0.2))}, {.relative = 1e-14});
  expect_close(log_sum_exp, {std::log(4), std::log(5)}, {.relative = 1e-14});
  reference_of<Losses>().cross_entropy(logits, {targets, 0.2}, 1, loss, log_sum_exp);
  const double smoothed = -0.9 * std::log(0.75) - 0.1 * std::log(0.25) - 0.9 * std::log(0.2) - 0.1 * std::log(0.8);
  expect_close(loss, {smoothed}, {.relative = 1e-14});
}

TEST(ReferenceCrossEntropy, HasItsNumericGradient) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    const Tensor logits = random_tensor({4, 6}, DType::kFloat64, 1, -3, 3);
    const Tensor targets = Tensor::from<std::int64_t>({0, 5, 2, 2}, {4});
    const Tensor loss = empty_losses({}), log_sum_exp = empty_losses({4}), dlogits = empty_losses({4, 6});
    const auto value = [&] {
      reference_of<Losses>().cross_entropy(logits, {targets, smoothing}, 0.25, loss, log_sum_exp);
      return 3 * loss.item();
    };
    const std::vector<double> expected = numeric_gradient(value, logits);
    value();
    reference_of<Losses>().cross_entropy_backward(logits, {targets, smoothing}, 0.25, log_sum_exp, scalar(3), dlogits);
    expect_close(dlogits, expected, {.absolute = 1e-9});
  }
}

TEST(ReferenceCrossEntropy, ATargetOutsideTheClassesIsNamed) {
  const Tensor logits = random_tensor({3, 5}, DType::kFloat16, 1);
  const Tensor loss = Tensor::empty({}, DType::kFloat32), log_sum_exp = Tensor::empty({3}, DType::kFloat32);
  for (const std::int64_t wrong : {std::int64_t{5}, std::int64_t{-1}}) {
    const Tensor targets = Tensor::from<std::int64_t>({0, wrong, 4}, {3});
    try {
      reference_of<Losses>().cross_entropy(logits, {targets}, 1, loss, log_sum_exp);
      FAIL() << "no error";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("row 1 is " + std::to_string(wrong)));
    }
  }
}

TEST(ReferenceCrossEntropy, ARankWithoutSamplesHasNoLoss) {
  const Tensor logits = empty_losses({0, 5});
  const Tensor targets = Tensor::empty({0}, DType::kInt64);
  const Tensor loss = scalar(7);
  reference_of<Losses>().cross_entropy(logits, {targets, 0.1}, 1, loss, empty_losses({0}));
  EXPECT_EQ(loss.item(), 0);
  reference_of<Losses>().cross_entropy_backward(logits, {targets, 0.1}, 1, empty_losses({0}), scalar(1), logits);
}

TEST(ReferenceCrossEntropy, WrongShapesAndDtypesAreRefused) {
  const Tensor logits = empty_losses({3, 5}), loss = empty_losses({}), log_sum_exp = empty_losses({3});
  const Tensor targets = Tensor::zeros({3}, DType::kInt64);
  const Losses& losses = reference_of<Losses>();
  EXPECT_NO_THROW(losses.cross_entropy(Tensor::zeros({3, 5}, DType::kFloat64), {targets}, 1, loss, log_sum_exp));
  EXPECT_THROW(losses.cross_entropy(logits, {Tensor::zeros({3}, DType::kInt32)}, 1, loss, log_sum_exp), ShapeError);
  EXPECT_THROW(losses.cross_entropy(logits, {Tensor::zeros({2}, DType::kInt64)}, 1, loss, log_sum_exp), ShapeError);
  EXPECT_THROW(losses.cross_entropy(logits, {targets}, 1, Tensor::empty({}, DType::kFloat32), log_sum_exp), ShapeError);
  EXPECT_THROW(losses.cross_entropy(logits, {targets, 1.5}, 1, loss, log_sum_exp), UsageError);
}

TEST(ReferencePairLoss, IsTheWeightedSumOfItsTermsWithItsGradients) {
  const Tensor x = Tensor::from<double>({1, 2, 3}, {3});
  const Tensor target = Tensor::from<double>({0, 4, 3}, {3});
  const Tensor loss = empty_losses({}), dx = empty_losses({3}), dtarget = empty_losses({3});
  struct Case {
    PairLossFunction function;
    double loss;
    std::vector<double> dx;
  };
  const Case cases[] = {{PairLoss::kSquare, 2.5, {10, -20, 0}},
                        {PairLoss::kAbsolute, 1.5, {5, -5, 0}},
                        {{PairLoss::kHuber, 1.5}, 1.1875, {5, -7.5, 0}}};
  for (const Case& one : cases) {
    reference_of<Losses>().pair_loss(one.function, x, target, 0.5, loss);
    EXPECT_EQ(loss.item(), one.loss);
    reference_of<Losses>().pair_loss_backward(one.function, x, target, PairSide::kX, 0.5, scalar(10), dx);
    EXPECT_EQ(values_of(dx), one.dx);
    reference_of<Losses>().pair_loss_backward(one.function, x, target, PairSide::kTarget, 0.5, scalar(10), dtarget);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(values_of(dtarget)[i], -one.dx[i]);
  }
  EXPECT_THROW(reference_of<Losses>().pair_loss(PairLoss::kSquare, x, empty_losses({2}), 1, loss), ShapeError);
  EXPECT_THROW(reference_of<Losses>().pair_loss(static_cast<PairLoss>(99), x, target, 1, loss), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
