// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/number_metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/group/world.h"
#include "runtime/job/job.h"
#include "runtime/train/eval_metrics.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

EvalResult figures_of(const NumberMetrics& numbers, double samples) {
  EvalResult result;
  numbers.append_to(result, numbers.sums(), samples);
  return result;
}

TEST(NumberMetrics, AreThoseOfScikitLearn) {
  const auto golden = nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/tables.json"));
  for (const auto& [name, each] : golden["figures"].items()) {
    SCOPED_TRACE(name);
    const auto rows = each["targets"].get<std::vector<std::vector<float>>>();
    const auto answers = each["answers"].get<std::vector<std::vector<float>>>();
    NumberMetrics numbers({std::ssize(rows[0])}, {});
    for (std::size_t i = 0; i < rows.size(); ++i) numbers.add(answers[i], rows[i]);
    const EvalResult result = figures_of(numbers, static_cast<double>(rows.size()));
    // The files' float64 is rounded to a float here.
    const double tolerance = std::abs(rows[0][0]) > 1000 ? 0.05 : 1e-6;
    EXPECT_NEAR(*value_of(result, "eval.rmse"), each["rmse"].get<double>(), tolerance);
    EXPECT_NEAR(*value_of(result, "eval.mae"), each["mae"].get<double>(), tolerance);
    EXPECT_NEAR(*value_of(result, "eval.r2"), each["r2"].get<double>(), tolerance);
    EXPECT_THAT(result.baseline, SizeIs(0));
  }
}

TEST(NumberMetrics, AreInTheUnitsOfTheFilesBesideWhatTheTrainingMeanGets) {
  // Targets 10, 20, 60 and answers 10, 30, 50, scaled.
  NumberMetrics numbers({1}, {.mean = {20}, .scale = {.mean = {10}, .std = {10}}});
  numbers.add(std::vector<float>{0, 2, 4}, std::vector<float>{0, 1, 5});
  const EvalResult result = figures_of(numbers, 3);
  EXPECT_DOUBLE_EQ(*value_of(result, "eval.rmse"), std::sqrt(200.0 / 3));
  EXPECT_DOUBLE_EQ(*value_of(result, "eval.mae"), 20.0 / 3);
  EXPECT_DOUBLE_EQ(*value_of(result, "eval.r2"), 1 - 200.0 / 1400);
  ASSERT_THAT(result.baseline, SizeIs(2));
  EXPECT_EQ(result.baseline[0].name, "rmse");
  EXPECT_DOUBLE_EQ(result.baseline[0].value, std::sqrt(1700.0 / 3));
  EXPECT_EQ(result.baseline[1].name, "mae");
  EXPECT_DOUBLE_EQ(result.baseline[1].value, 50.0 / 3);
  EXPECT_TRUE(is_better_lower("eval.rmse") && is_better_lower("eval.mae") && !is_better_lower("eval.r2"));
}

TEST(NumberMetrics, SumsOfSeveralRanksMakeTheSameFigures) {
  const data::TargetSummary targets{.mean = {3}};
  const std::vector<float> answers{1, 2, 3, 5, 8}, expected{1, 3, 2, 4, 9};
  NumberMetrics whole({1}, targets), first({1}, targets), second({1}, targets), none({1}, targets);
  whole.add(answers, expected);
  first.add(std::span(answers).first(2), std::span(expected).first(2));
  second.add(std::span(answers).subspan(2), std::span(expected).subspan(2));
  std::vector<double> sums(whole.sums().size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = first.sums()[i] + second.sums()[i] + none.sums()[i];
  EXPECT_EQ(sums, whole.sums());
}

TEST(NumberMetrics, ATargetAPositionHasNoR2AndANaNIsNone) {
  NumberMetrics dense({2, 2}, {});
  dense.add(std::vector<float>{1, 1, 1, 1}, std::vector<float>{1, 1, 1, 3});
  const EvalResult result = figures_of(dense, 1);
  EXPECT_EQ(value_of(result, "eval.rmse"), 1);
  EXPECT_FALSE(value_of(result, "eval.r2"));
  NumberMetrics nan({1}, {});
  nan.add(std::vector<float>{NAN}, std::vector<float>{1});
  EXPECT_TRUE(std::isnan(*value_of(figures_of(nan, 1), "eval.r2")));
}

TEST(EvalMetrics, OfARegressionAreItsDistancesAndOfClassesStandBesideTheMostFrequentOne) {
  auto world = comm::World::from_environment();
  job::Train train;
  train.set_loss(job::MSE);
  const Task regression(train, {.sample_shape = {2}, .target_shape = {1}, .target_summary = {.mean = {2}}});
  EXPECT_THAT(EvalMetrics::metrics_of(regression), ElementsAre("rmse", "mae", "r2"));
  EvalMetrics distances(regression);
  distances.add(Tensor::from<float>({1, 2}, {2, 1}), Tensor::from<float>({1, 4}, {2, 1}), 4);
  const EvalResult far = distances.total(*world.communicator());
  EXPECT_EQ(value_of(far, "eval.mae"), 1);
  ASSERT_THAT(far.baseline, SizeIs(2));
  EXPECT_EQ(far.baseline[1].value, 1.5);
  EXPECT_EQ(text_beside_baseline(far, far.metrics[1]), "1.0000 (baseline 1.5000)");
  EXPECT_EQ(text_beside_baseline(far, far.metrics[2]), text_of(far.metrics[2]));

  train.set_loss(job::CROSS_ENTROPY);
  const Task classes(train, {.sample_shape = {2}, .classes = 2, .target_summary = {.common_class = 1}});
  EvalMetrics answers(classes);
  answers.add(Tensor::from<float>({1, 0, 0, 1, 0, 1, 1, 0}, {4, 2}), Tensor::from<std::int64_t>({0, 1, 1, 1}, {4}), 1);
  const EvalResult shares = answers.total(*world.communicator());
  EXPECT_EQ(value_of(shares, "eval.accuracy"), 0.75);
  ASSERT_THAT(shares.baseline, SizeIs(1));
  EXPECT_EQ(shares.baseline[0].value, 0.75);
}

TEST(Metric, OfLargeAndOfSmallNumbersHasItsDigits) {
  EXPECT_EQ(text_of({"rmse", 24310.25, false}), "24310.2500");
  EXPECT_EQ(text_of({"rmse", 1234567.0, false}), "1.2346e+06");
  EXPECT_EQ(text_of({"rmse", 0.00012345, false}), "0.00012345");
  EXPECT_EQ(text_of({"rmse", 0, false}), "0.0000");
}

}  // namespace
}  // namespace lockstep::train
