// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank_clocks.h"

#include <gtest/gtest.h>

#include "comm/group/communicator.h"

namespace lockstep::train {
namespace {

using std::chrono::nanoseconds;

TEST(RankClocks, ALoneRankHasTheClockItself) {
  const ClockOffset offset = offset_to_rank_zero(*comm::make_self_communicator());
  EXPECT_EQ(offset.offset, nanoseconds(0));
  EXPECT_EQ(offset.error, nanoseconds(0));
}

TEST(RankClocks, DriftIsSharedOutOverTheTimeBetween) {
  const ClockOffset before{.at = nanoseconds(1000), .offset = nanoseconds(50)};
  const ClockOffset behind{.at = nanoseconds(2000), .offset = nanoseconds(60)};
  EXPECT_EQ(at_rank_zero(nanoseconds(1000), before, behind), nanoseconds(1050));
  EXPECT_EQ(at_rank_zero(nanoseconds(1500), before, behind), nanoseconds(1555));
  EXPECT_EQ(at_rank_zero(nanoseconds(2000), before, behind), nanoseconds(2060));
  EXPECT_EQ(at_rank_zero(nanoseconds(1500), before, before), nanoseconds(1550));
}

}  // namespace
}  // namespace lockstep::train
