// SPDX-License-Identifier: Apache-2.0
#include "comm/group/liveness/wait_clock.h"

#include <gtest/gtest.h>

#include <optional>
#include <semaphore>
#include <thread>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(WaitClock, StandsStillWhileNobodyWaits) {
  WaitClock clock;
  EXPECT_EQ(clock.total().count(), 0);
  { const WaitClock::Wait wait(clock); }
  const auto total = clock.total();
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_EQ(clock.total(), total);
}

TEST(WaitClock, CountsTheTimeInWhichAnyoneWaitsOnce) {
  WaitClock clock;
  const auto begin = steady_clock::now();
  {
    const WaitClock::Wait first(clock);
    std::optional<WaitClock::Wait> second(std::in_place, clock);
    std::this_thread::sleep_for(milliseconds(5));
    second.reset();
    EXPECT_GE(clock.total(), milliseconds(5)) << "a wait that has not ended counts";
  }
  const auto passed = steady_clock::now() - begin;
  EXPECT_GE(clock.total(), milliseconds(5));
  EXPECT_LE(clock.total(), passed) << "two threads that wait at once lose no more than the time that passes";
}

TEST(WaitClock, KnowsTheWaitsOfAThread) {
  WaitClock clock;
  const auto mine = [before = WaitClock::of_this_thread()] { return WaitClock::of_this_thread() - before; };
  {
    const WaitClock::Wait wait(clock);
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_EQ(mine(), clock.total());
}

TEST(WaitClock, CountsAnothersWaitForAThreadOnlyOnceThatWaitsForIt) {
  WaitClock clock;
  const auto mine = [before = WaitClock::of_this_thread()] { return WaitClock::of_this_thread() - before; };
  std::binary_semaphore waits(0), may_end(0);
  std::jthread other([&] {
    const WaitClock::Wait wait(clock);
    waits.release();
    may_end.acquire();
  });
  waits.acquire();
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_EQ(mine().count(), 0) << "this thread has computed";
  const auto before = clock.total();
  const auto begin = steady_clock::now();
  {
    const WaitClock::Join join(clock);
    { const WaitClock::Wait own(clock); }
    std::this_thread::sleep_for(milliseconds(2));
    may_end.release();
    other.join();
  }
  EXPECT_GE(before, milliseconds(2));
  EXPECT_GE(mine(), milliseconds(2));
  EXPECT_LE(mine(), clock.total() - before);
  EXPECT_LE(mine(), steady_clock::now() - begin) << "its own wait meanwhile counts once";
}

}  // namespace
}  // namespace lockstep::comm
