// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/hang_watch.h"

#include <gtest/gtest.h>

#include <semaphore>

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes kPatience{2};

TEST(HangWatch, TellsOnceOfEachHang) {
  LastEvents events;
  std::counting_semaphore<> told(0);
  const HangWatch watch(events, milliseconds(40), [&told] { told.release(); });
  events.step_begins(1);
  EXPECT_TRUE(told.try_acquire_for(kPatience));
  EXPECT_FALSE(told.try_acquire_for(milliseconds(200)));
  events.step_ends(1);
  events.step_begins(2);
  EXPECT_TRUE(told.try_acquire_for(kPatience));
  events.step_ends(2);
}

TEST(HangWatch, BetweenStepsNothingHangs) {
  LastEvents events;
  std::counting_semaphore<> told(0);
  const HangWatch watch(events, milliseconds(20), [&told] { told.release(); });
  events.step_begins(1);
  events.step_ends(1);
  EXPECT_FALSE(told.try_acquire_for(milliseconds(200)));
}

}  // namespace
}  // namespace lockstep::train
