// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stragglers.h"

#include <gmock/gmock.h>

#include <functional>

namespace lockstep::train {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

/// The changes and the steps behind which they were told, of `steps` steps with times by (step, rank).
std::vector<std::pair<int, Straggler>> changes(int ranks, int steps, const std::function<double(int, int)>& time_of) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back("host" + std::to_string(rank));
  Stragglers stragglers(hosts);
  std::vector<std::pair<int, Straggler>> found;
  for (int step = 1; step <= steps; ++step) {
    std::vector<double> times;
    for (int rank = 0; rank < ranks; ++rank) times.push_back(time_of(step, rank));
    for (const Straggler& change : stragglers.add(times)) found.emplace_back(step, change);
  }
  return found;
}

TEST(Stragglers, IsNoneOfRanksThatAreAlike) {
  for (const int ranks : {1, 2, 3, 8}) {
    // Up to 1.25 times as long, each rank in its turn.
    const auto noisy = [](int step, int rank) { return 0.1 + 0.025 * ((step * 7 + rank * 5) % 11) / 10; };
    EXPECT_THAT(changes(ranks, 200, noisy), IsEmpty()) << ranks;
  }
}

TEST(Stragglers, IsToldOfOnceAfterTwentySteps) {
  for (const int ranks : {2, 3, 8}) {
    for (const double factor : {1.35, 1.5, 2.0}) {
      const auto found = changes(ranks, 100, [&](int, int rank) { return rank == 1 ? 0.1 * factor : 0.1; });
      ASSERT_THAT(found, SizeIs(1)) << ranks;
      const auto& [step, straggler] = found[0];
      EXPECT_EQ(step, Stragglers::kSteps);
      EXPECT_EQ(straggler.rank, 1);
      EXPECT_EQ(straggler.host, "host1");
      EXPECT_NEAR(straggler.factor, factor, 1e-9);
      EXPECT_FALSE(straggler.ended);
    }
  }
}

TEST(Stragglers, IsToldOfAgainWhenItEnds) {
  const auto found =
      changes(3, 200, [](int step, int rank) { return rank == 2 && step > 50 && step <= 100 ? 0.2 : 0.1; });
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].first, 65);
  EXPECT_TRUE(found[1].second.ended);
  EXPECT_EQ(found[1].second.rank, 2);
  EXPECT_EQ(found[1].first, 115);
  EXPECT_EQ(str(found[1].second).substr(0, 34), "rank 2 on host2 is no longer slow:");
}

TEST(Stragglers, IsNoRankOfAFewSlowSteps) {
  EXPECT_THAT(changes(2, 200, [](int step, int rank) { return rank == 1 && step % 20 < 10 ? 0.5 : 0.1; }), IsEmpty());
  EXPECT_THAT(changes(2, 200, [](int step, int rank) { return rank == 1 && step == 30 ? 60.0 : 0.1; }), IsEmpty());
}

TEST(Stragglers, IsNoRankOfStepsTooShortToTell) {
  EXPECT_THAT(changes(2, 200, [](int, int rank) { return rank == 1 ? 0.0009 : 0.0001; }), IsEmpty());
}

TEST(Stragglers, AreFoundSideBySide) {
  const auto found = changes(5, 30, [](int, int rank) { return rank == 1 || rank == 3 ? 0.2 : 0.1; });
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].second.rank, 1);
  EXPECT_EQ(found[1].second.rank, 3);
}

}  // namespace
}  // namespace lockstep::train
