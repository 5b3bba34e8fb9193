// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/heartbeat.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "tests/support/no_threads.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-heartbeat-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    board_ = StatusBoard::create(folder_ / "status", 1);
  }
  ~HeartbeatTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  StatusBoard board_ = StatusBoard::from_environment();
};

TEST_F(HeartbeatTest, Beats) {
  const Heartbeat heartbeat(board_, 0);
  while (board_.get(0).beats < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(HeartbeatTest, LeavesTheSignalsOfThisThreadAsTheyWereWhereTheSystemStartsNone) {
  const support::NoMoreThreads no_more;
  EXPECT_THROW(Heartbeat(board_, 0), std::system_error);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

}  // namespace
}  // namespace lockstep::train
