// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/core_yield.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using std::chrono::microseconds;
constexpr YieldChoice::Clock::time_point kStart{std::chrono::hours(1)};

TEST(YieldChoice, GoesOnWhileNobodyWantsTheCore) {
  YieldChoice choice;
  for (int i = 0; i < 1000; ++i) {
    const auto now = kStart + microseconds(i);
    EXPECT_TRUE(choice.yields(now));
    choice.yielded(now, now + microseconds(1));
  }
}

TEST(YieldChoice, EndsForAWhileWhereAYieldCameBackLate) {
  YieldChoice choice;
  const auto back = kStart + microseconds(3000);
  choice.yielded(kStart, back);
  EXPECT_FALSE(choice.yields(back));
  EXPECT_FALSE(choice.yields(back + YieldChoice::kWhile - microseconds(1)));
  EXPECT_TRUE(choice.yields(back + YieldChoice::kWhile));
  // The next one tells again.
  choice.yielded(back + YieldChoice::kWhile, back + YieldChoice::kWhile + YieldChoice::kLate);
  EXPECT_FALSE(choice.yields(back + YieldChoice::kWhile + YieldChoice::kLate));
}

}  // namespace
}  // namespace lockstep
