// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/schedule.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "tests/runtime/optim/resolved_job.h"

namespace lockstep::optim {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

/// The rates of the first steps, base rate 8.
std::vector<double> rates(const std::string& schedule, int steps, std::int64_t total = 10) {
  const Schedule made(job::resolved("schedule { " + schedule + " }").schedule(), 8.0, total);
  std::vector<double> all;
  for (int applied = 0; applied < steps; ++applied) all.push_back(made.learning_rate(applied));
  return all;
}

TEST(Schedule, ConstantIsTheDefault) {
  EXPECT_THAT(rates("", 3), ElementsAre(8, 8, 8));
  EXPECT_THAT(rates("constant {}", 3), ElementsAre(8, 8, 8));
}

TEST(Schedule, WarmUpClimbsLinearlyToTheRate) {
  for (const char* kind : {"constant", "step", "cosine", "linear"}) {
    SCOPED_TRACE(kind);
    EXPECT_THAT(rates(std::string(kind) + " { warmup_steps: 4 }", 5), ElementsAre(2, 4, 6, 8, 8));
  }
}

TEST(Schedule, StepFallsAtEachMilestone) {
  EXPECT_THAT(rates("step { milestones: [2, 4] gamma: 0.5 }", 6), ElementsAre(8, 8, 4, 4, 2, 2));
  EXPECT_THAT(rates("step { milestones: 1 }", 2), ElementsAre(8, DoubleEq(0.8)));
  EXPECT_THAT(rates("step { warmup_steps: 2 milestones: [3, 3] gamma: 0.5 }", 4), ElementsAre(4, 8, 8, 2));
}

TEST(Schedule, CosineFallsToItsFraction) {
  const std::vector<double> plain = rates("cosine {}", 12);
  for (int applied = 0; applied <= 10; ++applied) {
    EXPECT_DOUBLE_EQ(plain[static_cast<std::size_t>(applied)], 4 * (1 + std::cos(std::numbers::pi * applied / 10)));
  }
  EXPECT_NEAR(plain[10], 0, 1e-12);
  EXPECT_NEAR(plain[11], 0, 1e-12) << "and stays there";
  const std::vector<double> floor = rates("cosine { warmup_steps: 2 final_fraction: 0.25 }", 11);
  EXPECT_DOUBLE_EQ(floor[2], 8);
  EXPECT_DOUBLE_EQ(floor[6], 5);
  EXPECT_DOUBLE_EQ(floor[10], 2);
}

TEST(Schedule, LinearFallsToItsFraction) {
  EXPECT_THAT(rates("linear { final_fraction: 0.5 }", 6, 4), ElementsAre(8, 7, 6, 5, 4, 4));
  EXPECT_THAT(rates("linear { warmup_steps: 2 }", 7, 6), ElementsAre(4, 8, 8, 6, 4, 2, 0));
}

TEST(Schedule, AWarmUpAsLongAsTheRunOnlyClimbs) {
  EXPECT_THAT(rates("cosine { warmup_steps: 4 }", 4, 4), ElementsAre(2, 4, 6, 8));
}

}  // namespace
}  // namespace lockstep::optim
