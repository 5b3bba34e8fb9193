// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/blocked_signals.h"

#include <gtest/gtest.h>

#include <system_error>
#include <thread>

#include "tests/support/no_threads.h"

namespace lockstep {
namespace {

bool blocks(int number) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, number) == 1;
}

TEST(BlockedSignals, HoldForAThreadThatIsStartedMeanwhile) {
  bool in_the_thread = false;
  std::thread thread;
  {
    const BlockedSignals for_the_thread;
    thread = std::thread([&] { in_the_thread = blocks(SIGTERM); });
  }
  thread.join();
  EXPECT_TRUE(in_the_thread);
  EXPECT_FALSE(blocks(SIGTERM));
}

TEST(BlockedSignals, EndWhereTheThreadCannotBeStarted) {
  const support::NoMoreThreads no_more;
  const auto start = [] {
    const BlockedSignals for_the_thread;
    std::thread([] {}).join();
  };
  EXPECT_THROW(start(), std::system_error);
  EXPECT_FALSE(blocks(SIGTERM));
}

}  // namespace
}  // namespace lockstep
