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
  const ScheduleOptions kinds[] = {
      ConstantSchedule{.warmup_steps = 4}, StepSchedule{.warmup_steps = 4, .milestones = {9}},
      CosineSchedule{.warmup_steps = 4}, LinearSchedule{.warmup_steps = 4}, ReduceOnPlateauSchedule{.warmup_steps = 4}};
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

TEST(Schedule, OneCycleIsPyTorchs) {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=8, total_steps=...) of PyTorch 2.15.
  const auto expect = [](const OneCycleSchedule& cycle, const std::vector<double>& expected) {
    EXPECT_THAT(rates(cycle, static_cast<int>(expected.size()), std::ssize(expected)),
                ::testing::Pointwise(::testing::DoubleNear(1e-14), expected));
  };
  expect({}, {0.3200000000000003, 4.16, 8.0, 7.603877056107789, 6.4939652315981045, 4.8900961754903145,
              3.109935824509686, 1.5060667684018958, 0.3961549438922103, 3.2e-05});
  expect({.three_phase = true}, {0.3200000000000003, 4.16, 8.0, 4.16, 0.32, 0.2894457748280816, 0.2094537748280816,
                                 0.11057822517191844, 0.03058622517191843, 3.2e-05});
  expect({.pct_start = 0.5, .div_factor = 4, .final_div_factor = 2, .anneal_strategy = Anneal::kLinear},
         {2.0, 4.0, 6.0, 8.0, 6.25, 4.5, 2.75, 1.0});
  // Shorter than its rise.
  expect({}, {7.955323483607294, 3.7010968213358004, 3.2e-05});
  expect({}, {3.2e-05});
  EXPECT_DOUBLE_EQ(rates(OneCycleSchedule{}, 12, 10)[11], 3.2e-05) << "and stays there";
}

TEST(Schedule, OfAFunctionIsPyTorchsLambdaLR) {
  // torch.optim.lr_scheduler.LambdaLR(lr_lambda=lambda step: 0.95 ** step) of PyTorch 2.15, lr 8.
  const auto factor = [](std::int64_t step) { return std::pow(0.95, static_cast<double>(step)); };
  const Schedule made = Schedule::of_function(factor, 8, 4);
  const double expected[] = {8.0, 7.6, 7.22, 6.859, 6.51605};
  for (int step = 0; step < 5; ++step) EXPECT_DOUBLE_EQ(made.learning_rate(step), expected[step]);
  EXPECT_THAT(made.table(), ElementsAre(8.0f, 7.6f, 7.22f, 6.859f));
  EXPECT_THROW(Schedule::of_function(nullptr, 8, 4), UsageError);
  EXPECT_THROW(Schedule::of_function(factor, -8, 4), FieldError);
}

TEST(Schedule, OfAProgramIsCalledByItsName) {
  const auto lent = lend_schedule("decay", [](const Settings& settings) {
    return [gamma = settings.number("gamma", 0.5)](std::int64_t step) { return std::pow(gamma, step); };
  });
  EXPECT_THAT(rates(RegisteredOptions{.name = "decay"}, 3), ElementsAre(8, 4, 2));
  EXPECT_THAT(rates(RegisteredOptions{.name = "decay", .options = {{"gamma", "0.25"}}}, 3), ElementsAre(8, 2, 0.5));
  const auto refused = [](const RegisteredOptions& call, const std::string& why) {
    EXPECT_THAT([&] { Schedule(call, 8, 10); },
                ::testing::ThrowsMessage<FieldError>(::testing::HasSubstr("schedule.registered" + why)));
  };
  refused({.name = "decoy"}, ": no schedule \"decoy\" is registered in this program");
  refused({.name = "decay", .options = {{"gama", "1"}}}, ": there is no option \"gama\"");
  refused({}, ".name: is required");
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
  refused(OneCycleSchedule{.pct_start = 1.5}, "schedule.one_cycle.pct_start: must be in [0, 1], is 1.5");
  refused(OneCycleSchedule{.div_factor = 0}, "schedule.one_cycle.div_factor: must be > 0, is 0");
  EXPECT_THAT([] { Schedule({}, -0.1, 10); },
              ::testing::ThrowsMessage<FieldError>("optim::Schedule.base_lr: must be >= 0, is -0.1"));
  EXPECT_THAT([] { Schedule({}, 0.1, -1); },
              ::testing::ThrowsMessage<FieldError>("optim::Schedule.total_steps: must be >= 0, is -1"));
}

}  // namespace
}  // namespace lockstep::optim
