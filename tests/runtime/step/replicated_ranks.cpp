// SPDX-License-Identifier: Apache-2.0
// Work that rank 0 does for all. Run as 2 ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/group/world.h"
#include "runtime/step/replicated.h"
#include "runtime/tensor/error.h"

namespace lockstep::step {
namespace {

class OnRankZero : public testing::Test {
 protected:
  comm::World world_ = comm::World::from_environment({.timeout = std::chrono::seconds(4)});
  comm::Communicator& group_ = *world_.communicator();
};

TEST_F(OnRankZero, RunsOnceAndForAllRanksBeforeAnyGoesOn) {
  int runs = 0;
  on_rank_zero(group_, [&] { ++runs; });
  EXPECT_EQ(runs, group_.rank() == 0 ? 1 : 0);
}

TEST_F(OnRankZero, AnErrorIsThrownByEveryRankAlike) {
  try {
    on_rank_zero(group_, [] { throw StorageError("no room\nat all", "make some:\ndelete something"); });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_STREQ(error.what(), "no room\nat all");
    EXPECT_EQ(error.advice(), "make some:\ndelete something");
  }
}

TEST_F(OnRankZero, MayTakeLongerThanTheTimeout) {
  on_rank_zero(group_, [] { std::this_thread::sleep_for(std::chrono::seconds(6)); });
}

}  // namespace
}  // namespace lockstep::step
