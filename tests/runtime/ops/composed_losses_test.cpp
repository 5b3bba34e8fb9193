// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using lockstep::testing::expect_second_gradients;
using ops::testing::kAllTypes;
using ops::testing::name_of_on;
using ::testing::Each;

class ComposedLosses : public ops::testing::OperationTest {
 protected:
  /// 1 or -1, where the model lies.
  static Tensor signs(const Tensor& model, const Shape& shape) {
    const Tensor numbers = like(model, random_tensor(shape, DType::kFloat64, 9));
    return where(gt(numbers, 0), 1.0, full_like(numbers, -1.0));
  }
};
INSTANTIATE_TEST_SUITE_P(On, ComposedLosses, kAllTypes, name_of_on);

constexpr LossReduction kReductions[] = {{}, {.divisor = 7}, {.reduction = Reduction::kSum}, {Reduction::kNone}};

TEST_P(ComposedLosses, OfTwoTensors) {
  for (const Shape& shape : {Shape{3, 5}, Shape{1, 1}, Shape{0, 4}, Shape{2, 3, 2}}) {
    for (const LossReduction& reduction : kReductions) {
      const Tensor x = random(shape, 1, -2, 2), target = random(shape, 2, -2, 2);
      const Tensor p = random(shape, 3, 0.1, 0.9), t = random(shape, 4, 0.1, 0.9);
      const ops::testing::Accuracy accuracy{.terms = shape.numel()};
      check([&](const auto& in) { return l1(in[0], in[1], reduction); }, {x, target}, accuracy);
      check([&](const auto& in) { return smooth_l1(in[0], in[1], 0.5, reduction); }, {x, target}, accuracy);
      check([&](const auto& in) { return huber(in[0], in[1], 0.5, reduction); }, {x, target}, accuracy);
      check([&](const auto& in) { return kl_div(in[0], in[1], false, reduction); }, {x, t}, accuracy);
      check([&](const auto& in) { return kl_div(in[0], in[1], true, reduction); }, {x, target}, accuracy);
      check(
          [&](const auto& in) {
            return binary_cross_entropy_with_logits(in[0], in[1], {reduction, {}, {}});
          },
          {x, t}, accuracy);
      check([&](const auto& in) { return binary_cross_entropy(in[0], in[1], {reduction, {}, {}}); }, {p, t}, accuracy);
      check([&](const auto& in) { return poisson_nll(in[0], in[1], {reduction}); }, {x, t}, accuracy);
      check([&](const auto& in) { return dice(in[0], in[1], 1.0, reduction); }, {p, t}, accuracy);
      check([&](const auto& in) { return triplet_margin(in[0], in[1], in[2], {reduction}); },
            {x, target, random(shape, 5, -2, 2)}, accuracy);
    }
  }
}

TEST_P(ComposedLosses, OfSigns) {
  const Shape shape{3, 5};
  const Tensor x = random(shape, 1, -2, 2), y = random(shape, 2, -2, 2);
  const ops::testing::Accuracy accuracy{.terms = shape.numel()};
  check([&](const auto& in) { return hinge_embedding(in[0], signs(in[0], shape)); }, {x}, accuracy);
  check([&](const auto& in) { return soft_margin(in[0], signs(in[0], shape)); }, {x}, accuracy);
  check([&](const auto& in) { return margin_ranking(in[0], in[1], signs(in[0], shape), 0.2); }, {x, y}, accuracy);
  check([&](const auto& in) { return cosine_embedding(in[0], in[1], signs(in[0], {3}), 0.2); }, {x, y}, accuracy);
}

TEST_P(ComposedLosses, OfClasses) {
  const Tensor x = random({2, 2, 5}, 1, -3, 0), weight = random({5}, 2, 0.5, 1);
  const auto targets = [](const Tensor& model) {
    return Tensor::from<std::int64_t>({4, 0, 2, 2}, {2, 2}).to(model.device());
  };
  for (const LossReduction& reduction : kReductions) {
    check(
        [&](const auto& in) {
          return nll(in[0], targets(in[0]), {reduction, {}, std::nullopt});
        },
        {x}, {.terms = 20});
    check(
        [&](const auto& in) {
          return nll(in[0], targets(in[0]), {reduction, like(in[0], weight), 2});
        },
        {x}, {.terms = 20});
  }
}

TEST_P(ComposedLosses, CrossEntropyOfWeightedClasses) {
  const Tensor x = random({2, 3, 5}, 1, -3, 3);
  const Tensor weight = random({5}, 2, 0.5, 1.5), of_samples = random({2, 3}, 3, 0.1, 2);
  const Tensor targets = Tensor::from<std::int64_t>({4, 0, -100, 2, 2, 1}, {2, 3});
  for (const double smoothing : {0.0, 0.3}) {
    for (const double divisor : {0.0, 7.0}) {
      const ops::testing::Accuracy accuracy{.terms = 20};
      check(
          [&](const auto& in) {
            return cross_entropy(in[0], targets.to(in[0].device()),
                                 {.label_smoothing = smoothing, .divisor = divisor, .ignore_index = -100});
          },
          {x}, accuracy);
      check(
          [&](const auto& in) {
            return cross_entropy(in[0], targets.to(in[0].device()),
                                 {.label_smoothing = smoothing,
                                  .divisor = divisor,
                                  .weight = like(in[0], weight),
                                  .sample_weight = like(in[0], of_samples),
                                  .ignore_index = -100});
          },
          {x}, accuracy);
      check(
          [&](const auto& in) {
            return cross_entropy(in[0], targets.to(in[0].device()).reshaped({6}).rows(3, 6),
                                 {.label_smoothing = smoothing, .divisor = divisor, .weight = like(in[0], weight)});
          },
          {random({3, 5}, 4, -3, 3)}, accuracy);
    }
  }
}

TEST_P(ComposedLosses, MarginsOfClasses) {
  const Tensor weight = random({5}, 2, 0.5, 1.5);
  const Tensor targets = Tensor::from<std::int64_t>({4, 0, 2, 2}, {2, 2});
  const Tensor lists = Tensor::from<std::int64_t>({4, 0, -1, 2, 2, -1, 1, 1, 1, 1, 0, 3, 2, 4, 1}, {3, 5});
  for (const LossReduction& reduction : kReductions) {
    const ops::testing::Accuracy accuracy{.terms = 20};
    for (const int p : {1, 2}) {
      check(
          [&](const auto& in) {
            return multi_margin(in[0], targets.to(in[0].device()), {reduction, p, 0.7, like(in[0], weight)});
          },
          {random({2, 2, 5}, 1, -2, 2)}, accuracy);
    }
    check([&](const auto& in) { return multilabel_margin(in[0], lists.to(in[0].device()), reduction); },
          {random({3, 5}, 1, -2, 2)}, accuracy);
  }
}

// The logits of a row that counts for nothing are not looked at, and all rows together may count for nothing.
TEST_P(ComposedLosses, AnIgnoredRowHasNeitherLossNorGradient) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = kernels::testing::tensor_of({1, 2, infinity, -infinity}, {2, 2}, dtype()).to(device());
  const Tensor targets = Tensor::from<std::int64_t>({1, -100}, {2}).to(device());
  x.set_requires_grad(true);
  for (const double smoothing : {0.0, 0.1}) {
    const Tensor loss = cross_entropy(x, targets, {.label_smoothing = smoothing, .ignore_index = -100});
    const Tensor of_first = cross_entropy(x.detach().rows(0, 1), targets.rows(0, 1), {.label_smoothing = smoothing});
    EXPECT_NEAR(loss.item(), of_first.item(), 1e-6);
    const std::vector<double> gradient = values_of(autograd::grad(loss, {x})[0]);
    EXPECT_EQ(gradient[2], 0);
    EXPECT_EQ(gradient[3], 0);
  }
  const Tensor of_nothing = cross_entropy(x.detach().rows(1, 2), targets.rows(1, 2), {.ignore_index = -100});
  EXPECT_TRUE(std::isnan(of_nothing.item()));  // 0 / 0, as PyTorch's
}

// What a loop over cross_entropy's rows and a sum of their losses gives.
TEST(LossesOfOperations, SampleWeightsWeighTheRows) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat64, 1), weights = random_tensor({3}, DType::kFloat64, 2, 0, 2);
  const Tensor targets = Tensor::from<std::int64_t>({3, 0, 1}, {3});
  double sum = 0, total = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    sum += weights.item(row) * cross_entropy(x.rows(row, row + 1), targets.rows(row, row + 1)).item();
    total += weights.item(row);
  }
  EXPECT_NEAR(cross_entropy(x, targets, {.sample_weight = weights}).item(), sum / total, 1e-12);
  EXPECT_NEAR(cross_entropy(x, targets, {.divisor = 3, .sample_weight = weights}).item(), sum / 3, 1e-12);
  EXPECT_NEAR(nll(log_softmax(x), targets, {{}, {}, {}, weights}).item(), sum / total, 1e-12);
}

TEST(LossesOfOperations, SecondGradients) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat64, 1, 0.1, 0.9),
               t = random_tensor({3, 4}, DType::kFloat64, 2, 0.1, 0.9);
  expect_second_gradients([](const auto& in) { return huber(in[0], in[1], 0.3); }, {x, t});
  expect_second_gradients([](const auto& in) { return kl_div(in[0], in[1]); }, {x, t});
  expect_second_gradients([](const auto& in) { return binary_cross_entropy_with_logits(in[0], in[1]); }, {x, t});
  expect_second_gradients([](const auto& in) { return binary_cross_entropy(in[0], in[1]); }, {x, t});
  expect_second_gradients([](const auto& in) { return dice(in[0], in[1]); }, {x, t});
}

/// What reaches x through the target is not counted twice.
TEST(LossesOfOperations, SecondGradientsWhereTheTargetIsComputedFromTheInput) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat64, 1, 0.1, 0.9);
  expect_second_gradients([](const auto& in) { return mse(in[0], mul(in[0], in[0])); }, {x});
  expect_second_gradients([](const auto& in) { return huber(exp(in[0]), in[0], 1.4); }, {x});
  expect_second_gradients([](const auto& in) { return kl_div(in[0], mul(in[0], in[0])); }, {x});
  expect_second_gradients([](const auto& in) { return kl_div(mul(in[0], in[0]), in[0], true); }, {x});
}

TEST(LossesOfOperations, SquaresHaveTheirSecondDerivativeAtZeroToo) {
  const Tensor x = Tensor::zeros({1}, DType::kFloat64), t = Tensor::zeros({1}, DType::kFloat64);
  x.set_requires_grad(true);
  for (const auto& [loss, second] : {std::pair(huber(x, t, 2.0), 1.0), {smooth_l1(x, t, 0.5), 2.0}}) {
    const Tensor dx = autograd::grad(loss, {x}, {}, {.create_graph = true})[0];
    EXPECT_EQ(dx.item(), 0);
    EXPECT_EQ(autograd::grad(dx, {x}, ones_like(dx))[0].item(), second);
  }
}

/// With p = infinity the distance is the largest difference.
TEST_P(ComposedLosses, TripletMarginOfAnyNorm) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double p : {1.0, 3.0, kInfinity}) {
    check(
        [&](const auto& in) {
          return triplet_margin(in[0], in[1], in[2], {{}, 5.0, p});
        },
        {random({3, 4}, 1), random({3, 4}, 2), random({3, 4}, 3)}, {.terms = 12});
  }
  const auto row = [&](const std::vector<double>& numbers) {
    return kernels::testing::tensor_of(numbers, {1, 3}, dtype()).to(device());
  };
  const Tensor loss = triplet_margin(row({0, 0, 0}), row({1, -3, 2}), row({1, 1, 1}), {{}, 0.5, kInfinity, 0.0});
  EXPECT_EQ(loss.item(), 2.5);
}

TEST(LossesOfOperations, LogitsOfAnySizeGiveFiniteLosses) {
  const Tensor x = Tensor::from<float>({1000, -1000, 1000, -1000, 0}, {5});
  const Tensor t = Tensor::from<float>({1, 0, 0, 1, 1}, {5});
  x.set_requires_grad(true);
  const Tensor loss = binary_cross_entropy_with_logits(x, t, {{.reduction = Reduction::kNone}});
  EXPECT_EQ(values_of(loss), (std::vector<double>{0, 0, 1000, 1000, values_of(loss)[4]}));
  EXPECT_NEAR(loss.item(4), std::log(2), 1e-6);
  EXPECT_EQ(values_of(autograd::grad(sum(loss), {x})[0]), (std::vector<double>{0, 0, 1, -1, -0.5}));
}

TEST(LossesOfOperations, RunInFloat32) {
  const Tensor x = random_tensor({3, 4}, DType::kBFloat16, 1, 0.1, 0.9), t = random_tensor({3, 4}, DType::kBFloat16, 2);
  EXPECT_EQ(l1(x, t).dtype(), DType::kFloat32);
  const amp::Autocast autocast(DType::kBFloat16);
  for (const Tensor& loss : {l1(x, t), kl_div(x, t), binary_cross_entropy_with_logits(x, t), dice(x, t)}) {
    EXPECT_EQ(loss.dtype(), DType::kFloat32);
  }
}

TEST(LossesOfOperations, BinaryCrossEntropyIsRefusedUnderAutocast) {
  const Tensor p = random_tensor({3}, DType::kFloat32, 1, 0.1, 0.9);
  binary_cross_entropy(p, p);
  const amp::Autocast autocast(DType::kFloat16);
  try {
    binary_cross_entropy(p, p);
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.advice(), ::testing::HasSubstr("binary_cross_entropy_with_logits"));
  }
  const amp::Autocast off(false);
  binary_cross_entropy(p, p);
}

TEST(LossesOfOperations, SharesOfABatchAddUpToItsLoss) {
  const Tensor x = random_tensor({6, 3}, DType::kFloat64, 1), t = random_tensor({6, 3}, DType::kFloat64, 2);
  double shares = 0;
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 6}, {6, 6}}) {
    shares += huber(x.rows(begin, end), t.rows(begin, end), 1.0, {.divisor = 6}).item();
  }
  EXPECT_NEAR(shares, huber(x, t).item(), 1e-12);
}

TEST(LossesOfOperations, RefuseWhatMeansNothing) {
  const Tensor x = Tensor::zeros({3, 4}, DType::kFloat32), other = Tensor::zeros({4, 3}, DType::kFloat32);
  EXPECT_THROW(l1(x, other), ShapeError);
  EXPECT_THROW(kl_div(x, other), ShapeError);
  EXPECT_THROW(binary_cross_entropy_with_logits(x, other), ShapeError);
  EXPECT_THROW(huber(x, x, 0.0), UsageError);
  EXPECT_THROW(smooth_l1(x, x, -1.0), UsageError);
  EXPECT_THROW(nll(x, Tensor::from<std::int64_t>({0, 1}, {2})), ShapeError);
  EXPECT_THROW(nll(x, Tensor::from<std::int64_t>({0, 1, 4}, {3})), UsageError);
  EXPECT_THROW(nll(x, Tensor::from<std::int64_t>({0, 1, -100}, {3})), UsageError);
  nll(x, Tensor::from<std::int64_t>({0, 1, -100}, {3}), {{}, {}, -100});
  EXPECT_THROW(cosine_embedding(x, x, other), ShapeError);
  const Tensor targets = Tensor::zeros({3}, DType::kInt64);
  EXPECT_THROW(cross_entropy(x, targets, {.weight = other}), ShapeError);
  EXPECT_THROW(cross_entropy(x, targets, {.sample_weight = other}), ShapeError);
  EXPECT_THROW(cross_entropy(x, Tensor::from<std::int64_t>({0, 1, -100}, {3}), {.ignore_index = -1}), UsageError);
  EXPECT_THROW(mse(x, x, {.ignore_index = 0}), UsageError);
  EXPECT_THROW(multi_margin(x, targets, {{}, 3}), UsageError);
  EXPECT_THROW(multilabel_margin(x, targets), ShapeError);
  EXPECT_THROW(multilabel_margin(x, Tensor::from(std::vector<std::int64_t>(12, 4), {3, 4})), UsageError);
}

}  // namespace
}  // namespace lockstep::ops
