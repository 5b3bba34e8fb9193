// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/weight_mean.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "tests/runtime/optim/small_model.h"

namespace lockstep::optim {
namespace {

using kernels::testing::bytes_of;
using kernels::testing::expect_close;
using optim::testing::SmallModel;
using optim::testing::values_of;
using optim::testing::with_sgd;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const auto kSgd = with_sgd({.lr = 0.1, .momentum = 0.9});

/// One step with a gradient; `bad`: it is infinite, so that the step is skipped.
void step(SmallModel& model, WeightMean& mean, int number, bool bad = false) {
  model.backward(number);
  if (bad) model.spoil(0, 3, INFINITY);
  mean.update(model.optimizer->step());
}

/// The formula, in float64, of the masters as they came.
struct Oracle {
  explicit Oracle(const SmallModel& model) : mean(values_of(model.arena->masters())) {}

  void add(const SmallModel& model, double decay) {
    const std::vector<double> weights = values_of(model.arena->masters());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = decay * mean[i] + (1 - decay) * weights[i];
  }

  std::vector<double> mean;
};

TEST(WeightMean, IsTheFormulaOfTheWeightsOfEachStep) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SmallModel model(kSgd, {.compute_dtype = dtype});
    WeightMean mean(*model.optimizer, {.decay = 0.9});
    Oracle oracle(model);
    for (int number = 1; number <= 20; ++number) {
      step(model, mean, number);
      oracle.add(model, 0.9);
    }
    expect_close(mean.values(), oracle.mean, {.relative = 1e-5, .absolute = 1e-6});
  }
}

TEST(WeightMean, WarmsUpByTheNumberOfAppliedSteps) {
  SmallModel model(kSgd);
  WeightMean mean(*model.optimizer, {.decay = 0.7, .warmup = 10});
  Oracle oracle(model);
  int applied = 0;
  for (int number = 1; number <= 20; ++number) {
    const bool bad = number % 4 == 2;
    step(model, mean, number, bad);
    if (bad) continue;
    ++applied;
    oracle.add(model, std::min(0.7, (1.0 + applied) / (10.0 + applied)));
  }
  expect_close(mean.values(), oracle.mean, {.relative = 1e-5, .absolute = 1e-6});
}

TEST(WeightMean, SkippedStepChangesNoBitOfIt) {
  SmallModel model(kSgd);
  WeightMean mean(*model.optimizer, {.decay = 0.5});
  step(model, mean, 1);
  const auto before = bytes_of(mean.values());
  step(model, mean, 2, true);
  EXPECT_EQ(bytes_of(mean.values()), before);
  step(model, mean, 3);
  EXPECT_NE(bytes_of(mean.values()), before);
}

TEST(WeightMean, StandsInForTheWeightsAndGivesThemBackBitForBit) {
  for (const bool masters : {true, false}) {
    SmallModel model(kSgd, {.compute_dtype = DType::kFloat16, .reduced_parameters = true, .master_weights = masters});
    WeightMean mean(*model.optimizer, {.decay = 0.9});
    step(model, mean, 1);
    step(model, mean, 2);
    const auto weights = bytes_of(model.arena->masters()), copies = bytes_of(model.arena->copies());
    const auto values = values_of(mean.values()), averages = values_of(mean.values());
    {
      const WeightMean::InPlace evaluated(mean);
      EXPECT_NE(bytes_of(model.arena->copies()), copies);
      expect_close(model.arena->copies(), values, {.relative = 1e-3, .absolute = 1e-4});
    }
    EXPECT_EQ(bytes_of(model.arena->masters()), weights);
    EXPECT_EQ(bytes_of(model.arena->copies()), copies);
    EXPECT_EQ(values_of(mean.values()), averages);
  }
}

TEST(WeightMean, BeginsAgainAtTheWeights) {
  SmallModel model(kSgd);
  WeightMean mean(*model.optimizer);
  step(model, mean, 1);
  EXPECT_NE(bytes_of(mean.values()), bytes_of(model.arena->masters()));
  mean.restart();
  EXPECT_EQ(bytes_of(mean.values()), bytes_of(model.arena->masters()));
}

TEST(WeightMean, KeepsFrozenWeightsBitForBit) {
  SmallModel model(with_sgd({.lr = 0.1}, {.groups = {{.match = "dense.weight", .frozen = true}}}));
  WeightMean mean(*model.optimizer, {.decay = 0.3});
  for (const nn::Arena::Slot& slot : model.arena->slots()) {
    if (slot.parameter.name != "dense.weight") continue;
    const auto before = bytes_of(mean.of(slot));
    mean.update(model.optimizer->step());
    EXPECT_EQ(bytes_of(mean.of(slot)), before);
  }
}

TEST(WeightMean, RefusesADecayThatIsNone) {
  SmallModel model(kSgd);
  for (const double decay : {-0.1, 1.0, 2.0}) {
    EXPECT_THAT(([&] { const WeightMean mean(*model.optimizer, {.decay = decay}); }),
                ThrowsMessage<FieldError>(HasSubstr("ema.decay")));
  }
}

}  // namespace
}  // namespace lockstep::optim
