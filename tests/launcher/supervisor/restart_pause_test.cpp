// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/restart_pause.h"

#include <gtest/gtest.h>

namespace lockstep::launcher {
namespace {

using std::chrono::seconds;

TEST(RestartPause, IsNoneWhileTrainingGoesOn) {
  RestartPause pause;
  for (const std::uint64_t step : {1, 7, 8, 300}) EXPECT_EQ(pause.after(step), seconds(0));
}

TEST(RestartPause, DoublesWhereRanksAreLostAtTheSamePlace) {
  RestartPause pause;
  for (const int expected : {1, 2, 4, 8, 16, 30, 30}) EXPECT_EQ(pause.after(0), seconds(expected));
  EXPECT_EQ(pause.after(5), seconds(0));
  EXPECT_EQ(pause.after(5), seconds(1));
  EXPECT_EQ(pause.after(4), seconds(2));
}

}  // namespace
}  // namespace lockstep::launcher
