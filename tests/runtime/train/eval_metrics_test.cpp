// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/eval_metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/train/record/confusion_file.h"
#include "tests/support/folder.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Task classifier(std::int64_t classes) {
  job::Train train;
  train.set_loss(job::CROSS_ENTROPY);
  return {train, {.sample_shape = {1}, .classes = classes}};
}

EvalResult total(const EvalMetrics& answers) {
  auto world = comm::World::from_environment();
  return answers.total(*world.communicator());
}

TEST(EvalMetrics, CountTheHighestClassAndTheFiveHighest) {
  const Task task = classifier(7);
  EXPECT_THAT(EvalMetrics::metrics_of(task), ElementsAre("accuracy", "top5_accuracy"));
  EvalMetrics answers(task);
  const std::vector<float> row{7, 6, 5, 4, 3, 2, 1};
  std::vector<float> rows;
  for (int i = 0; i < 7; ++i) rows.insert(rows.end(), row.begin(), row.end());
  answers.add(Tensor::from<float>(rows, {7, 7}), Tensor::from<std::int64_t>({0, 1, 2, 3, 4, 5, 6}, {7}), 14);
  const EvalResult result = total(answers);
  EXPECT_EQ(result.samples, 7);
  EXPECT_EQ(result.loss, 2);
  EXPECT_EQ(value_of(result, "eval.accuracy"), 1.0 / 7);
  EXPECT_EQ(value_of(result, "eval.top5_accuracy"), 5.0 / 7);
  EXPECT_FALSE(value_of(result, "eval.perplexity"));
}

TEST(EvalMetrics, TiesGoToTheFirstClassesAndNaNToNone) {
  const Task task = classifier(6);
  EvalMetrics ties(task);
  ties.add(Tensor::zeros({2, 6}, DType::kFloat32), Tensor::from<std::int64_t>({4, 5}, {2}), 0);
  EXPECT_EQ(value_of(total(ties), "eval.top5_accuracy"), 0.5);
  EvalMetrics nan(task);
  nan.add(Tensor::from<float>(std::vector<float>(6, NAN), {1, 6}), Tensor::from<std::int64_t>({0}, {1}), NAN);
  EXPECT_EQ(value_of(total(nan), "eval.top5_accuracy"), 0.0);
  EXPECT_EQ(value_of(total(nan), "eval.accuracy"), 0.0);
}

TEST(EvalMetrics, OfTokensCountPositionsAndHaveAPerplexity) {
  job::Train train;
  train.set_loss(job::CROSS_ENTROPY);
  const Task task(train,
                  {.sample_shape = {3}, .vocabulary = 2, .classes = 2, .target_shape = {3}, .targets_per_sample = 2});
  EXPECT_THAT(EvalMetrics::metrics_of(task), ElementsAre("accuracy", "perplexity"));
  EvalMetrics answers(task);
  answers.add(Tensor::from<float>({1, 0, 1, 0, 1, 0}, {1, 3, 2}),
              Tensor::from<std::int64_t>({0, data::kIgnoredLabel, 1}, {1, 3}), std::log(3.0));
  const EvalResult result = total(answers);
  EXPECT_EQ(value_of(result, "eval.accuracy"), 0.5);
  EXPECT_NEAR(*value_of(result, "eval.perplexity"), 3, 1e-12);
  train.set_label_smoothing(0.1);
  EXPECT_THAT(
      EvalMetrics::metrics_of(Task(train, {.sample_shape = {3}, .vocabulary = 2, .classes = 2, .target_shape = {3}})),
      ElementsAre("accuracy"))
      << "a smoothed loss is no likelihood";
  train.set_label_smoothing(0);
  EXPECT_THAT(EvalMetrics::metrics_of(Task(train, {.sample_shape = {3}, .vocabulary = 2, .classes = 2})),
              ElementsAre("accuracy"))
      << "a class of a text is no token";
}

TEST(EvalMetrics, OfMasksHaveTheMeanDiceOfTheSamples) {
  job::Train train;
  train.set_loss(job::BCE_DICE);
  const Task task(train, {.sample_shape = {2, 2}, .target_shape = {2, 2}});
  EXPECT_THAT(EvalMetrics::metrics_of(task), ElementsAre("dice", "mean_dice", "mean_iou"));
  EvalMetrics answers(task);
  // Half of it found; nothing there and nothing found; a NaN finds nothing.
  answers.add(Tensor::from<float>({1, 1, -1, 0}, {1, 2, 2}), Tensor::from<float>({1, 0, 0.6f, 0.5f}, {1, 2, 2}), 3);
  answers.add(Tensor::from<float>({-1, -2, -1, -3, NAN, 4, -1, -1}, {2, 2, 2}),
              Tensor::from<float>({0, 0, 0, 0, 1, 0, 0, 0}, {2, 2, 2}), 3);
  const EvalResult result = total(answers);
  EXPECT_EQ(result.loss, 2);
  EXPECT_NEAR(*value_of(result, "eval.dice"), (0.5 + 1 + 0) / 3, 1e-12);
  // Of all together: 1 is found of 3, and 2 where nothing is.
  EXPECT_NEAR(*value_of(result, "eval.mean_dice"), 2.0 / 6, 1e-12);
  EXPECT_NEAR(*value_of(result, "eval.mean_iou"), 1.0 / 5, 1e-12);
  ASSERT_EQ(result.overlaps.size(), 1u);
  EXPECT_FALSE(is_better_lower("eval.dice"));
}

TEST(EvalMetrics, OfClassesAPositionHaveTheMeanDiceOfThoseButTheBackground) {
  job::Train train;
  train.set_loss(job::CROSS_ENTROPY);
  const Task task(train, {.sample_shape = {4, 1}, .classes = 4, .target_shape = {4}, .targets_per_sample = 4});
  EXPECT_THAT(EvalMetrics::metrics_of(task), ElementsAre("accuracy", "dice", "mean_dice", "mean_iou"));
  EvalMetrics answers(task);
  const auto row = [](std::vector<std::int64_t> classes) {
    std::vector<float> values;
    for (const std::int64_t at : classes) {
      for (std::int64_t c = 0; c < 4; ++c) values.push_back(c == at ? 1.0f : 0.0f);
    }
    return Tensor::from(values, {1, 4, 4});
  };
  // Class 1: 2 of 1 + 2; class 2: nothing of 1; class 3 does not occur.
  answers.add(row({0, 1, 2, 1}), Tensor::from<std::int64_t>({0, 1, 0, 0}, {1, 4}), 0);
  answers.add(row({0, 0, 0, 0}), Tensor::from<std::int64_t>({0, 0, 0, data::kIgnoredLabel}, {1, 4}), 0);
  const EvalResult result = total(answers);
  EXPECT_NEAR(*value_of(result, "eval.dice"), ((2.0 / 3 + 0) / 2 + 1) / 2, 1e-12);
  EXPECT_NEAR(*value_of(result, "eval.accuracy"), 5.0 / 7, 1e-12) << "of those that are not ignored";
  // Class 0: 4 of 4 answered and 6 expected; class 1: 1 of 2 and 1; class 2: 1 answered; class 3 occurs nowhere.
  ASSERT_EQ(result.overlaps.size(), 4u);
  EXPECT_NEAR(result.overlaps[0].iou, 4.0 / 6, 1e-12);
  EXPECT_NEAR(result.overlaps[1].dice, 2.0 / 3, 1e-12);
  EXPECT_NEAR(result.overlaps[1].iou, 1.0 / 2, 1e-12);
  EXPECT_EQ(result.overlaps[2].iou, 0);
  EXPECT_TRUE(result.overlaps[2].occurs);
  EXPECT_FALSE(result.overlaps[3].occurs);
  EXPECT_NEAR(*value_of(result, "eval.mean_iou"), (4.0 / 6 + 1.0 / 2 + 0) / 3, 1e-12);
  EXPECT_NEAR(*value_of(result, "eval.mean_dice"), (8.0 / 10 + 2.0 / 3 + 0) / 3, 1e-12);
}

TEST(EvalMetrics, TheConfusionIsWrittenAsNumbersAndAsAPicture) {
  const Task task = classifier(3);
  EvalMetrics answers(task, EvalMetrics::Confusion::kCounted);
  answers.add(Tensor::from<float>({1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0}, {4, 3}),
              Tensor::from<std::int64_t>({0, 0, 1, 1}, {4}), 0);
  const EvalResult result = total(answers);
  ASSERT_TRUE(result.confusion);
  EXPECT_THAT(result.confusion->counts, ElementsAre(1, 1, 0, 0, 2, 0, 0, 0, 0));
  const Folder folder;
  const auto text_of_file = [&](const std::string& name) {
    write_confusion(folder / name, *result.confusion);
    std::ifstream in(folder / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const auto json = nlohmann::json::parse(text_of_file("confusion.json"));
  EXPECT_EQ(json["matrix"], nlohmann::json::parse("[[1,1,0],[0,2,0],[0,0,0]]"));
  EXPECT_EQ(json["per_class"][0]["accuracy"], 0.5);
  EXPECT_EQ(json["per_class"][1]["precision"], 2.0 / 3);
  EXPECT_TRUE(json["per_class"][2]["accuracy"].is_null());
  const std::string picture = text_of_file("confusion.svg");
  EXPECT_THAT(picture, HasSubstr("<svg "));
  EXPECT_THAT(picture, HasSubstr(">2</text>"));
  EXPECT_THROW(write_confusion(folder / "confusion.png", *result.confusion), UsageError);
}

TEST(EvalMetrics, RefuseAConfusionThatNobodyCouldRead) {
  EXPECT_THROW(EvalMetrics(classifier(1001), EvalMetrics::Confusion::kCounted), UsageError);
  job::Train train;
  train.set_loss(job::MSE);
  EXPECT_THROW(EvalMetrics(Task(train, {.sample_shape = {1}, .target_shape = {1}}), EvalMetrics::Confusion::kCounted),
               UsageError);
}

}  // namespace
}  // namespace lockstep::train
