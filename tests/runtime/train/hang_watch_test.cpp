// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/hang_watch.h"

#include <gtest/gtest.h>

#include <semaphore>

#include "runtime/tensor/trace_range.h"

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes kPatience{2};

TEST(HangWatch, TellsOnceOfEachWait) {
  LastEvents events;
  std::counting_semaphore<> told(0);
  const HangWatch watch(events, milliseconds(40), [&told] { told.release(); });
  {
    const TraceRange range("all_reduce", RangeKind::kCommunication);
    EXPECT_TRUE(told.try_acquire_for(kPatience));
    EXPECT_FALSE(told.try_acquire_for(milliseconds(200)));
  }
  const TraceRange range("wait for data", RangeKind::kData);
  EXPECT_TRUE(told.try_acquire_for(kPatience));
}

TEST(HangWatch, TellsOfAComputationThatLastsLongerThanAnyBefore) {
  LastEvents events;
  std::counting_semaphore<> told(0);
  const HangWatch watch(events, milliseconds(40), [&told] { told.release(); });
  events.step_begins(1);
  EXPECT_FALSE(told.try_acquire_for(milliseconds(200))) << "the first step may take any time";
  events.step_ends(1);
  EXPECT_FALSE(told.try_acquire_for(milliseconds(200))) << "between steps nothing hangs";
  events.step_begins(2);
  EXPECT_TRUE(told.try_acquire_for(kPatience));
}

}  // namespace
}  // namespace lockstep::train
