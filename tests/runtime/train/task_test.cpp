// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/task.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runtime/tensor/error.h"

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

TEST(Task, RefusesALossThatDoesNotSuitTheData) {
  EXPECT_THROW(Task(with_loss(job::MSE), {.sample_shape = {3}, .classes = 2}), UsageError);
  EXPECT_THROW(Task(with_loss(job::CROSS_ENTROPY), {.sample_shape = {3}, .target_shape = {2}}), UsageError);
}

}  // namespace
}  // namespace lockstep::train
