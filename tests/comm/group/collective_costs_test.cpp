// SPDX-License-Identifier: Apache-2.0
#include "comm/group/collective_costs.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr RankLinks kTcp{
    .hosts = RankLinks::Between::kTcp, .host_alpha_us = 3, .host_gb_per_s = 10, .network_gbps = 8, .latency_us = 50};

RankLinks mpi() {
  RankLinks links = kTcp;
  links.hosts = RankLinks::Between::kMpi;
  return links;
}

TEST(CollectiveCosts, ALoneRankPaysNothing) {
  EXPECT_EQ(all_reduce_cost({}, kTcp, kMillion, DType::kFloat32).total_us(), 0);
  EXPECT_EQ(all_gather_cost({}, kTcp, kMillion).total_us(), 0);
  EXPECT_EQ(all_reduce_link_bytes({}, kMillion, DType::kFloat32), 0);
}

TEST(CollectiveCosts, AHostReducesAtItsSpeedWithoutTheNetwork) {
  const CollectiveCost cost = all_reduce_cost({4, 4}, kTcp, kMillion, DType::kFloat16);
  EXPECT_DOUBLE_EQ(cost.channel_us, 3 + 200);
  EXPECT_EQ(cost.link_us, 0);
}

TEST(CollectiveCosts, AHostSendsItsShareOfTheSumsTwice) {
  EXPECT_DOUBLE_EQ(all_reduce_link_bytes({2, 1}, kMillion, DType::kFloat32), 4e6);
  EXPECT_DOUBLE_EQ(all_reduce_link_bytes({4, 1}, kMillion, DType::kFloat16), 3e6);
  // 8 Gbit/s are 1000 bytes a microsecond; over TCP the ranks have met at rank 0 before.
  const CollectiveCost cost = all_reduce_cost({2, 1}, kTcp, kMillion, DType::kFloat32);
  EXPECT_DOUBLE_EQ(cost.channel_us, 2 * 50 + 2 * 50);
  EXPECT_NEAR(cost.link_us, 4000, 1);
  EXPECT_GT(cost.link_us, 4000);
}

TEST(CollectiveCosts, SixteenBitSumsOfSeveralRanksTravelInFloat32) {
  EXPECT_DOUBLE_EQ(all_reduce_link_bytes({4, 2}, kMillion, DType::kBFloat16),
                   all_reduce_link_bytes({4, 2}, kMillion, DType::kFloat32));
  EXPECT_DOUBLE_EQ(all_reduce_link_bytes({4, 2}, kMillion, DType::kFloat32), 4e6);
}

TEST(CollectiveCosts, RanksOfAHostShareItsLink) {
  // The hosts' sums are as many as with one rank each; reduced within the host before.
  const CollectiveCost alone = all_reduce_cost({2, 1}, mpi(), kMillion, DType::kFloat32);
  const CollectiveCost shared = all_reduce_cost({4, 2}, mpi(), kMillion, DType::kFloat32);
  EXPECT_NEAR(shared.link_us, alone.link_us, 1);
  EXPECT_DOUBLE_EQ(shared.channel_us - alone.channel_us, 3 + 400 + 50);
}

TEST(CollectiveCosts, CoresThatComputeReduceWhereThereAreNoOthers) {
  RankLinks shared = kTcp;
  EXPECT_EQ(all_reduce_cost({4, 2}, shared, kMillion, DType::kFloat32).core_us, 0);
  shared.copy_gb_per_s = 12;
  // Sent, received and added up: 4 MB each, read and written.
  EXPECT_DOUBLE_EQ(all_reduce_cost({2, 1}, shared, kMillion, DType::kFloat32).core_us, 2000);
  // In a host all of its time is a core's; the ranks share what goes over the link.
  EXPECT_DOUBLE_EQ(all_reduce_cost({2, 2}, shared, kMillion, DType::kFloat32).core_us, 3 + 400);
  EXPECT_DOUBLE_EQ(all_reduce_cost({4, 2}, shared, kMillion, DType::kFloat32).core_us, 3 + 400 + 1000);
}

TEST(CollectiveCosts, WhatIsSmallTakesOneWayThereAndBackOverTcp) {
  EXPECT_DOUBLE_EQ(all_reduce_cost({2, 1}, kTcp, 1, DType::kFloat32).channel_us, 100);
  EXPECT_DOUBLE_EQ(all_gather_cost({2, 1}, kTcp, 4).channel_us, 100);
  EXPECT_DOUBLE_EQ(all_gather_cost({2, 1}, kTcp, kMillion).channel_us, 150);
  // 64 KiB of all ranks together are the most that rank 0 carries.
  EXPECT_DOUBLE_EQ(all_reduce_cost({2, 1}, kTcp, 8192, DType::kFloat32).channel_us, 100);
  EXPECT_DOUBLE_EQ(all_reduce_cost({2, 1}, kTcp, 8193, DType::kFloat32).channel_us, 200);
}

TEST(CollectiveCosts, MpisMeetingsGrowByOneMessageWithTwiceTheRanks) {
  const auto channel_us = [](std::int64_t ranks) {
    return all_reduce_cost({ranks, 1}, mpi(), kMillion, DType::kFloat32).channel_us;
  };
  EXPECT_DOUBLE_EQ(channel_us(2), 50 + 100);
  EXPECT_DOUBLE_EQ(channel_us(3), 100 + 100);
  EXPECT_DOUBLE_EQ(channel_us(1024), 500 + 100);
}

TEST(CollectiveCosts, EveryRankGathersWhatTheOthersHave) {
  EXPECT_NEAR(all_gather_cost({4, 1}, mpi(), kMillion).link_us, 3000, 1);
  EXPECT_NEAR(all_gather_cost({4, 2}, mpi(), kMillion).link_us, 4000, 1);
  EXPECT_DOUBLE_EQ(all_gather_cost({4, 4}, mpi(), kMillion).total_us(), 3 + 400);
}

}  // namespace
}  // namespace lockstep::comm
