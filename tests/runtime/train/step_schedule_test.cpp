// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_schedule.h"

#include <gmock/gmock.h>

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;
using step::ClockedEvent;
using testing::ElementsAre;

ClockedEvent event(const char* category, const char* name, int begin, int end, bool is_backward = false) {
  return {.name = name,
          .category = category,
          .is_backward = is_backward,
          .begin = milliseconds(begin),
          .end = milliseconds(end)};
}

TEST(StepSchedule, TimesAreTheRanksOwn) {
  const StepSchedule schedule = step_schedule_of({
      event("phase", "rest", 100, 101),
      event("communication", "all_gather", 103, 105),
      event("operation", "batch_norm", 101, 106),
      event("phase", "forward", 101, 110),
      // A wait within a collective.
      event("communication", "wait for other ranks", 112, 114),
      event("communication", "all_reduce", 112, 116),
      event("operation", "batch_norm", 110, 117, true),
      event("work", "reduce a bucket", 117, 118),
      event("operation", "linear", 118, 125, true),
      event("work", "reduce a bucket", 125, 126),
      event("communication", "wait for a reduction", 126, 146),
      event("work", "finish the reduction", 125, 147),
      event("phase", "backward", 110, 147),
      event("phase", "optimizer", 147, 150),
  });
  EXPECT_THAT(schedule.norm_forward_ms, ElementsAre(4));
  EXPECT_THAT(schedule.norm_backward_ms, ElementsAre(11));
  EXPECT_THAT(schedule.bucket_ready_ms, ElementsAre(12, 20));
  EXPECT_EQ(schedule.reduction_ms, 20);
  EXPECT_EQ(schedule.step_ms, 24);
}

TEST(StepSchedule, TheMedianIsOfEachTime) {
  StepSchedule fast{.bucket_ready_ms = {1, 9}, .reduction_ms = 9, .step_ms = 10};
  StepSchedule middle{.bucket_ready_ms = {3, 10}, .reduction_ms = 11, .step_ms = 12};
  StepSchedule slow{.bucket_ready_ms = {2, 50}, .reduction_ms = 60, .step_ms = 70};
  const StepSchedule median = median_of({slow, fast, middle}, 0.5);
  EXPECT_THAT(median.bucket_ready_ms, ElementsAre(1, 5));
  EXPECT_EQ(median.reduction_ms, 5.5);
  EXPECT_EQ(median.step_ms, 6);
}

TEST(StepSchedule, OfAnotherBatchLiesOnTheLineThroughTwo) {
  const StepSchedule small{.bucket_ready_ms = {2, 3}, .norm_forward_ms = {1}, .reduction_ms = 3, .step_ms = 5};
  const StepSchedule large{.bucket_ready_ms = {3, 5, 9}, .norm_forward_ms = {1}, .reduction_ms = 5, .step_ms = 9};
  const StepSchedule between = step_of(12, {8, small}, {16, large});
  EXPECT_THAT(between.bucket_ready_ms, ElementsAre(2.5, 4));
  EXPECT_THAT(between.norm_forward_ms, ElementsAre(1));
  EXPECT_EQ(between.reduction_ms, 4);
  EXPECT_EQ(between.step_ms, 7);
  EXPECT_EQ(step_of(32, {16, large}, {8, small}).step_ms, 17);
  EXPECT_EQ(step_of(1, {16, {.step_ms = 9}}, {8, {.step_ms = 1}}).step_ms, 0) << "no time is negative";
}

}  // namespace
}  // namespace lockstep::train
