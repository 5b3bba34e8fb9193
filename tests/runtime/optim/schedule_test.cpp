// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace lockstep::optim {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

/// The rates of the first steps, base rate 8.
std::vector<double> rates(const ScheduleOptions& options, int steps, std::int64_t total = 10) {
  const Schedule made(options, 8.0, total);
  std::vector<double> all;
  for (int applied = 0; applied < steps; ++applied) all.push_back(made.learning_rate(applied));
  return all;
}

TEST(Schedule, ConstantIsTheDefault) {
  EXPECT_THAT(rates({}, 3), ElementsAre(8, 8, 8));
  EXPECT_THAT(rates(ConstantSchedule{}, 3), ElementsAre(8, 8, 8));
}

TEST(Schedule, WarmUpClimbsLinearlyToTheRate) {
  const ScheduleOptions kinds[] = {ConstantSchedule{.warmup_steps = 4},
                                   StepSchedule{.warmup_steps = 4, .milestones = {9}},
                                   CosineSchedule{.warmup_steps = 4}, LinearSchedule{.warmup_steps = 4}};
  for (const ScheduleOptions& kind : kinds) {
    SCOPED_TRACE(kind.index());
    EXPECT_THAT(rates(kind, 5), ElementsAre(2, 4, 6, 8, 8));
  }
}

TEST(Schedule, StepFallsAtEachMilestone) {
  EXPECT_THAT(rates(StepSchedule{.milestones = {2, 4}, .gamma = 0.5}, 6), ElementsAre(8, 8, 4, 4, 2, 2));
  EXPECT_THAT(rates(StepSchedule{.milestones = {1}}, 2), ElementsAre(8, DoubleEq(0.8)));
  EXPECT_THAT(rates(StepSchedule{.warmup_steps = 2, .milestones = {2, 3}, .gamma = 0.5}, 4), ElementsAre(4, 8, 4, 2));
}

TEST(Schedule, CosineFallsToItsFraction) {
  const std::vector<double> plain = rates(CosineSchedule{}, 12);
  for (int applied = 0; applied <= 10; ++applied) {
    EXPECT_DOUBLE_EQ(plain[static_cast<std::size_t>(applied)], 4 * (1 + std::cos(std::numbers::pi * applied / 10)));
  }
  EXPECT_NEAR(plain[10], 0, 1e-12);
  EXPECT_NEAR(plain[11], 0, 1e-12) << "and stays there";
  const std::vector<double> floor = rates(CosineSchedule{.warmup_steps = 2, .final_fraction = 0.25}, 11);
  EXPECT_DOUBLE_EQ(floor[2], 8);
  EXPECT_DOUBLE_EQ(floor[6], 5);
  EXPECT_DOUBLE_EQ(floor[10], 2);
}

TEST(Schedule, LinearFallsToItsFraction) {
  EXPECT_THAT(rates(LinearSchedule{.final_fraction = 0.5}, 6, 4), ElementsAre(8, 7, 6, 5, 4, 4));
  EXPECT_THAT(rates(LinearSchedule{.warmup_steps = 2}, 7, 6), ElementsAre(4, 8, 8, 6, 4, 2, 0));
}

TEST(Schedule, AWarmUpAsLongAsTheRunOnlyClimbs) {
  EXPECT_THAT(rates(CosineSchedule{.warmup_steps = 4}, 4, 4), ElementsAre(2, 4, 6, 8));
}

TEST(Schedule, RefusesWhatCannotBeMeant) {
  const auto refused = [](const ScheduleOptions& options, const char* message) {
    EXPECT_THAT([&] { Schedule(options, 8.0, 10); }, ::testing::ThrowsMessage<FieldError>(message));
  };
  refused(ConstantSchedule{.warmup_steps = -1}, "schedule.constant.warmup_steps: must be >= 0, is -1");
  refused(StepSchedule{}, "schedule.step.milestones: is required: the steps at which the rate falls, [1000, 2000]");
  refused(StepSchedule{.milestones = {3, 3}}, "schedule.step.milestones: must be > 0 and ascending");
  refused(StepSchedule{.milestones = {0, 3}}, "schedule.step.milestones: must be > 0 and ascending");
  refused(StepSchedule{.milestones = {3}, .gamma = 0}, "schedule.step.gamma: must be > 0, is 0");
  refused(CosineSchedule{.final_fraction = -1}, "schedule.cosine.final_fraction: must be >= 0, is -1");
  refused(LinearSchedule{.final_fraction = std::nan("")}, "schedule.linear.final_fraction: must be >= 0, is nan");
  EXPECT_THAT([] { Schedule({}, -0.1, 10); },
              ::testing::ThrowsMessage<FieldError>("optim::Schedule.base_lr: must be >= 0, is -0.1"));
  EXPECT_THAT([] { Schedule({}, 0.1, -1); },
              ::testing::ThrowsMessage<FieldError>("optim::Schedule.total_steps: must be >= 0, is -1"));
}

}  // namespace
}  // namespace lockstep::optim
