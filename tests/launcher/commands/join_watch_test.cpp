// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/join_watch.h"

#include <gmock/gmock.h>

#include <future>

#include "runtime/base/host_name.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

TEST(JoinWatch, TellsOfARankThatDoesNotJoinInTime) {
  std::promise<Error> told;
  const JoinWatch watch(1ms, [&told](const Error& error) { told.set_value(error); });
  std::future<Error> late = told.get_future();
  ASSERT_EQ(late.wait_for(60s), std::future_status::ready);
  const Error error = late.get();
  EXPECT_EQ(error.code(), ExitCode::kPeerLost);
  EXPECT_THAT(error.what(), testing::HasSubstr("The networks of " + host_name() + " are\n"));
}

TEST(JoinWatch, EndsAtOnceWhereTheRankHasJoined) {
  bool told = false;
  {
    const JoinWatch watch(1h, [&told](const Error&) { told = true; });
  }
  EXPECT_FALSE(told);
}

TEST(JoinWatch, GivesAStartTwiceTheTimeoutAndHalfAMinuteAtLeast) {
  EXPECT_EQ(JoinWatch::limit_for(5s), 30s);
  EXPECT_EQ(JoinWatch::limit_for(60s), 120s);
}

}  // namespace
}  // namespace lockstep::launcher
