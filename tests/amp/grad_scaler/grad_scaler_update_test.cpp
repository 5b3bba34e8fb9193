// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/amp/grad_scaler/scaled_model.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::ScaledModel;
using amp::testing::scaler_with;
using amp::testing::state_of;
using ::testing::ElementsAre;

/// The scale after each of these steps.
std::vector<float> scales(const GradScalerOptions& options, const std::vector<bool>& finite) {
  GradScaler scaler = scaler_with(options);
  ScaledModel model;
  std::vector<float> all;
  for (const bool good : finite) {
    model.train(scaler, good);
    all.push_back(scaler.get_scale());
  }
  return all;
}

TEST(ScaleUpdate, GrowsAtEachInterval) {
  EXPECT_THAT(scales({.init = 4, .growth_interval = 2}, {true, true, true, true, true}), ElementsAre(4, 8, 8, 16, 16));
  EXPECT_THAT(scales({.init = 4, .growth_factor = 3, .growth_interval = 1}, {true, true}), ElementsAre(12, 36));
}

TEST(ScaleUpdate, BacksOffOnAnOverflowAndCountsAnew) {
  EXPECT_THAT(scales({.init = 64, .growth_interval = 2}, {true, false, true, true}), ElementsAre(64, 32, 32, 64));
  EXPECT_THAT(scales({.init = 64, .backoff_factor = 0.25}, {false, false}), ElementsAre(16, 4));
}

TEST(ScaleUpdate, StopsAtTheFloorAndTheCeiling) {
  EXPECT_THAT(scales({.init = 4, .min = 1.5}, {false, false, false}), ElementsAre(2, 1.5, 1.5));
  EXPECT_THAT(scales({.init = 4, .growth_interval = 1, .max = 10}, {true, true, true}), ElementsAre(8, 10, 10));
}

TEST(ScaleUpdate, DoesNotGrowToInfinity) {
  const float largest = 0x1p127f;
  GradScaler scaler = scaler_with({.init = 1.7014118346046923e38, .growth_interval = 1, .max = 1e300});
  ASSERT_EQ(scaler.get_scale(), largest);
  // Scaled by as much, real gradients overflow: the gradients are dictated instead.
  ScaledModel model;
  scaler.scale(Tensor::zeros({}, DType::kFloat32, device()));
  model.SmallModel::backward(1);
  EXPECT_FALSE((*scaler.step(*model.optimizer)).found_inf);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), largest);
  EXPECT_EQ(scaler.growth_tracker(), 0u);
}

TEST(ScaleUpdate, TrackerCountsAndReturnsToZero) {
  GradScaler scaler = scaler_with({.init = 4, .growth_interval = 3});
  ScaledModel model;
  std::vector<std::uint32_t> tracker;
  for (const bool finite : {true, true, false, true, true, true, true}) {
    model.train(scaler, finite);
    tracker.push_back(scaler.growth_tracker());
  }
  EXPECT_THAT(tracker, ElementsAre(1, 2, 0, 1, 2, 0, 1));
}

TEST(ScaleUpdate, StaticScalesStayButStepsAreSkippedAllTheSame) {
  GradScaler scaler = scaler_with({.dynamic = false, .init = 128, .growth_interval = 1});
  EXPECT_FALSE(scaler.dynamic());
  ScaledModel model;
  model.train(scaler);
  const auto before = state_of(*model.optimizer);
  EXPECT_TRUE(model.train(scaler, false).found_inf);
  EXPECT_EQ(state_of(*model.optimizer), before);
  EXPECT_EQ(scaler.get_scale(), 128);
  EXPECT_EQ(scaler.consecutive_skips(), 1u);
  model.train(scaler);
  EXPECT_EQ(scaler.get_scale(), 128);
  EXPECT_EQ(model.optimizer->applied_steps(), 2);
}

TEST(ScaleUpdate, OneOptimizersOverflowBacksOffWhileTheOtherSteps) {
  GradScaler scaler = scaler_with({.init = 64, .growth_interval = 1});
  ScaledModel good, bad;
  for (const auto& order : {std::pair{&good, &bad}, std::pair{&bad, &good}}) {
    const float before = scaler.get_scale();
    const std::int64_t good_steps = good.optimizer->applied_steps();
    good.optimizer->zero_grad();
    bad.optimizer->zero_grad();
    good.backward(scaler);
    bad.backward(scaler, false);
    const auto bad_state = state_of(*bad.optimizer);
    scaler.step(*order.first->optimizer);
    scaler.step(*order.second->optimizer);
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), before / 2);
    EXPECT_EQ(good.optimizer->applied_steps(), good_steps + 1);
    EXPECT_EQ(state_of(*bad.optimizer), bad_state);
  }
}

TEST(ScaleUpdate, TheDefaultsArePyTorchs) {
  const GradScalerState state = scaler_with().state_dict();
  EXPECT_EQ(state.scale, 65536);
  EXPECT_EQ(state.growth_factor, 2);
  EXPECT_EQ(state.backoff_factor, 0.5);
  EXPECT_EQ(state.growth_interval, 2000u);
}

}  // namespace
}  // namespace lockstep::amp
