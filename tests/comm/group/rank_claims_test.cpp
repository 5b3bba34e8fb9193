// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/rank_claims.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using Stage = RankClaims::Stage;

constexpr RankClaims::Clock::time_point kStart{};

/// Calls as `rank` every 100 ms from `from` to `to`. Returns what the last call came to.
Stage call_on(RankClaims& claims, int rank, const std::vector<int>& missing, std::chrono::milliseconds from,
              std::chrono::milliseconds to) {
  Stage stage = Stage::kPassesBy;
  for (auto at = from; at <= to; at += 100ms) stage = claims.call(rank, missing, kStart + at);
  return stage;
}

TEST(RankClaims, AreNamedOnceTheyLastAndDecidedOnceTheyLastLonger) {
  RankClaims claims(1s, 10s);
  EXPECT_EQ(call_on(claims, 1, {1}, 0s, 900ms), Stage::kPassesBy);
  EXPECT_EQ(call_on(claims, 1, {1}, 1s, 9900ms), Stage::kNamed);
  EXPECT_FALSE(claims.all_told({1}));
  EXPECT_EQ(call_on(claims, 1, {1}, 10s, 10s), Stage::kDecided);
  EXPECT_TRUE(claims.all_told({1}));
}

// It has found the hub of its run.
TEST(RankClaims, OfOneThatCallsNoMoreAreForgotten) {
  RankClaims claims(1s, 10s);
  EXPECT_EQ(call_on(claims, 1, {1}, 0s, 9s), Stage::kNamed);
  EXPECT_EQ(call_on(claims, 1, {1}, 20s, 20900ms), Stage::kPassesBy);
  EXPECT_EQ(call_on(claims, 1, {1}, 21s, 29900ms), Stage::kNamed);
}

// The other ranks of this run have yet to start, so this one may, too.
TEST(RankClaims, DecideNothingWhileAnotherRankIsMissingThatNobodyClaims) {
  RankClaims claims(1s, 10s);
  EXPECT_EQ(call_on(claims, 1, {1, 2}, 0s, 30s), Stage::kNamed);
  EXPECT_EQ(call_on(claims, 1, {1}, 30s, 30s), Stage::kDecided);
}

TEST(RankClaims, AreToldEachBeforeTheRunEnds) {
  RankClaims claims(1s, 10s);
  for (auto at = 0s; at < 12s; at += 1s) {
    claims.call(1, {1, 2}, kStart + at);
    claims.call(2, {1, 2}, kStart + at);
  }
  EXPECT_TRUE(claims.all_told({1, 2}));
  RankClaims halfway(1s, 10s);
  for (auto at = 0s; at < 10s; at += 1s) {
    halfway.call(2, {1, 2}, kStart + at);
    halfway.call(1, {1, 2}, kStart + at);
  }
  halfway.call(2, {1, 2}, kStart + 10s);
  EXPECT_EQ(halfway.call(1, {1, 2}, kStart + 10s), Stage::kDecided);
  EXPECT_FALSE(halfway.all_told({1, 2})) << "2 had called before 1 had lasted";
  EXPECT_EQ(halfway.call(2, {1, 2}, kStart + 11s), Stage::kDecided);
  EXPECT_TRUE(halfway.all_told({1, 2}));
}

}  // namespace
}  // namespace lockstep::comm
