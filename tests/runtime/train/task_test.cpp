// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/task.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/job/job.h"

namespace lockstep::train {
namespace {

job::Train with_loss(job::LossKind loss) {
  job::Train train;
  train.set_loss(loss);
  return train;
}

TEST(Task, AModelOfTokensHasAnOutputForEachClassOfAPosition) {
  const Task task(with_loss(job::CROSS_ENTROPY),
                  {.sample_shape = {5}, .vocabulary = 7, .classes = 7, .target_shape = {5}, .targets_per_sample = 5});
  EXPECT_TRUE(task.classifies());
  EXPECT_EQ(task.model_input().outputs, 7);
  EXPECT_EQ(task.model_input().vocabulary, 7);
  EXPECT_EQ(task.model_input().target_shape, (Shape{5}));
}

TEST(Task, TheLossOfASampleIsTheMeanOverItsTargetsThatCount) {
  const Task task(with_loss(job::CROSS_ENTROPY),
                  {.sample_shape = {3}, .vocabulary = 2, .classes = 2, .target_shape = {3}, .targets_per_sample = 2});
  const Tensor output = Tensor::from<float>({0, 0, 9, 9, 0, 0, 1, 3, 9, 9, 1, 3}, {2, 3, 2});
  const Tensor target = Tensor::from<std::int64_t>({0, data::kIgnoredLabel, 1, 0, data::kIgnoredLabel, 1}, {2, 3});
  const double low = std::log1p(std::exp(2.0)), high = std::log1p(std::exp(-2.0));
  const double first = std::log(2.0), second = (low + high) / 2;
  EXPECT_NEAR(task.loss(output, target, 2).item(), (first + second) / 2, 1e-6);
  EXPECT_NEAR(task.loss(output, target, 1).item(), first + second, 1e-6);
}

/// -(t log s + (1 - t) log(1 - s)) of a logit.
double cross_entropy_of(double logit, double target) { return std::log1p(std::exp(-logit)) + (1 - target) * logit; }

double probability(double logit) { return 1 / (1 + std::exp(-logit)); }

TEST(Task, TheLossOfAMaskIsTheMeanOverItsElementsAndDiceOfTheSample) {
  const Tensor output = Tensor::from<float>({2, -1, 0, 3}, {2, 2});
  const Tensor target = Tensor::from<float>({1, 0, 0.5f, 0}, {2, 2});
  const double entropies =
      (cross_entropy_of(2, 1) + cross_entropy_of(-1, 0)) / 2 + (cross_entropy_of(0, 0.5) + cross_entropy_of(3, 0)) / 2;
  const double first = 1 - (2 * probability(2) + 1) / (probability(2) + probability(-1) + 1 + 1);
  const double second = 1 - (2 * 0.5 * 0.5 + 1) / (0.5 + probability(3) + 0.5 + 1);
  const data::Description masks{.sample_shape = {2}, .target_shape = {2}};
  const auto loss = [&](job::LossKind kind, double divisor) {
    return Task(with_loss(kind), masks).loss(output, target, divisor).item();
  };
  for (const double divisor : {1.0, 2.0, 7.0}) {
    EXPECT_NEAR(loss(job::BCE_WITH_LOGITS, divisor), entropies / divisor, 1e-6);
    EXPECT_NEAR(loss(job::DICE, divisor), (first + second) / divisor, 1e-6);
    EXPECT_NEAR(loss(job::BCE_DICE, divisor), (entropies + first + second) / divisor, 1e-6);
  }
  EXPECT_TRUE(Task(with_loss(job::DICE), masks).learns_masks());
  EXPECT_FALSE(Task(with_loss(job::MSE), masks).learns_masks());
}

TEST(Task, TheLossOfNoMaskIsZeroAndHasAGradient) {
  for (const job::LossKind kind : {job::BCE_WITH_LOGITS, job::DICE, job::BCE_DICE}) {
    const Task task(with_loss(kind), {.sample_shape = {2, 2, 2, 1}, .target_shape = {2, 2, 2}});
    const Tensor output = Tensor::empty({0, 2, 2, 2}, DType::kFloat32);
    output.set_requires_grad(true);
    const Tensor loss = task.loss(output, Tensor::empty({0, 2, 2, 2}, DType::kFloat32), 5);
    EXPECT_EQ(loss.item(), 0);
    loss.backward();
    EXPECT_TRUE(output.grad().defined());
  }
}

TEST(Task, RefusesMasksOutsideZeroToOne) {
  const Task task(with_loss(job::BCE_DICE), {.sample_shape = {2}, .target_shape = {2}});
  const Tensor output = Tensor::zeros({1, 2}, DType::kFloat32);
  for (const float wrong : {255.0f, -0.5f, NAN}) {
    EXPECT_THROW(task.loss(output, Tensor::from<float>({0, wrong}, {1, 2}), 1), UsageError) << wrong;
  }
}

TEST(Task, EachTargetCountsTheWeightOfItsClassAndTheDivisorStays) {
  job::Train train = with_loss(job::CROSS_ENTROPY);
  train.add_class_weight(0.5);
  train.add_class_weight(3);
  const Task task(train, {.sample_shape = {3}, .classes = 2});
  const Tensor output = Tensor::from<float>({0, 0, 1, 3, 1, 3}, {3, 2});
  const Tensor target = Tensor::from<std::int64_t>({0, 1, 0}, {3});
  const double sum = 0.5 * std::log(2.0) + 3 * std::log1p(std::exp(-2.0)) + 0.5 * std::log1p(std::exp(2.0));
  EXPECT_NEAR(task.loss(output, target, 3).item(), sum / 3, 1e-6);
  EXPECT_FALSE(task.learns_likelihood());
  EXPECT_TRUE(Task(with_loss(job::CROSS_ENTROPY), {.sample_shape = {3}, .classes = 2}).learns_likelihood());
}

TEST(Task, EachSampleCountsItsWeightInEveryLoss) {
  const Tensor weights = Tensor::from<float>({2, 0.5f}, {2});
  const auto expect_weighted = [&](const Task& task, const Tensor& output, const Tensor& target) {
    double sum = 0;
    for (std::int64_t i = 0; i < 2; ++i) {
      sum += weights.item(i) * task.loss(output.rows(i, i + 1), target.rows(i, i + 1), 1).item();
    }
    EXPECT_NEAR(task.loss(output, target, 2, weights).item(), sum / 2, 1e-6);
    const Tensor both = Tensor::from<float>({1, 1}, {2});
    EXPECT_NEAR(task.loss(output, target, 2, both).item(), task.loss(output, target, 2).item(), 1e-6);
  };
  const Tensor output = Tensor::from<float>({2, -1, 0, 3}, {2, 2});
  expect_weighted(Task(with_loss(job::CROSS_ENTROPY), {.sample_shape = {3}, .classes = 2}), output,
                  Tensor::from<std::int64_t>({0, 1}, {2}));
  const Task positions(with_loss(job::CROSS_ENTROPY),
                       {.sample_shape = {3}, .classes = 2, .target_shape = {3}, .targets_per_sample = 2});
  expect_weighted(positions, Tensor::from<float>({0, 0, 9, 9, 0, 0, 1, 3, 9, 9, 1, 3}, {2, 3, 2}),
                  Tensor::from<std::int64_t>({0, data::kIgnoredLabel, 1, 0, data::kIgnoredLabel, 1}, {2, 3}));
  expect_weighted(Task(with_loss(job::MSE), {.sample_shape = {3}, .target_shape = {2}}), output,
                  Tensor::from<float>({1, 0, 0.5f, 7}, {2, 2}));
  for (const job::LossKind kind : {job::BCE_WITH_LOGITS, job::DICE, job::BCE_DICE}) {
    expect_weighted(Task(with_loss(kind), {.sample_shape = {2}, .target_shape = {2}}), output,
                    Tensor::from<float>({1, 0, 0.5f, 0}, {2, 2}));
  }
}

TEST(Task, AMixtureHasTheLossesOfBothLabels) {
  job::Train train = with_loss(job::CROSS_ENTROPY);
  train.set_label_smoothing(0.1);
  train.add_class_weight(0.5);
  train.add_class_weight(3);
  const Task task(train, {.sample_shape = {3}, .classes = 2});
  const Tensor output = Tensor::from<float>({2, -1, 0, 3}, {2, 2});
  const data::Batch batch{.target = Tensor::from<std::int64_t>({0, 1}, {2}),
                          .weight = Tensor::from<float>({0.75f, 0.5f}, {2}),
                          .other_target = Tensor::from<std::int64_t>({1, 1}, {2}),
                          .other_weight = Tensor::from<float>({0.25f, 0.5f}, {2})};
  const auto of = [&](std::int64_t row, std::int64_t label) {
    return task.loss(output.rows(row, row + 1), Tensor::from<std::int64_t>({label}, {1}), 1).item();
  };
  EXPECT_NEAR(task.loss(output, batch, 2).item(), (0.75 * of(0, 0) + 0.25 * of(0, 1) + of(1, 1)) / 2, 1e-6);
}

TEST(Task, RefusesWeightsThatAreNotOneAClass) {
  job::Train train = with_loss(job::CROSS_ENTROPY);
  train.add_class_weight(1);
  EXPECT_THROW(Task(train, {.sample_shape = {3}, .classes = 2}), FieldError);
}

TEST(Task, RefusesALossThatDoesNotSuitTheData) {
  EXPECT_THROW(Task(with_loss(job::BCE_DICE), {.sample_shape = {3}, .classes = 2}), UsageError);
  EXPECT_THROW(Task(with_loss(job::MSE), {.sample_shape = {3}, .classes = 2}), UsageError);
  EXPECT_THROW(Task(with_loss(job::CROSS_ENTROPY), {.sample_shape = {3}, .target_shape = {2}}), UsageError);
}

}  // namespace
}  // namespace lockstep::train
