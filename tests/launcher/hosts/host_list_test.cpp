// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/host_list.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Hosts, AreCountedWithTheirRanks) {
  EXPECT_EQ(ranks_on("a:4,b:4"), 8);
  EXPECT_EQ(ranks_on("a,b:3"), 4);
}

TEST(Hosts, WithoutANameOrANumberAreRefused) {
  for (const char* hosts : {"a:x", "a:0", ":4", "a:,b", "a:2x", "a,,b"})
    EXPECT_THROW(ranks_on(hosts), UsageError) << hosts;
}

TEST(Hosts, WithMoreRanksThanCanBeCountedAreRefused) {
  EXPECT_EQ(ranks_on("a:2147483646,b"), 2147483647);
  for (const char* hosts : {"a:2000000000,b:2000000000", "a:2147483647,b", "a:4000000000"}) {
    EXPECT_THROW(ranks_on(hosts), UsageError) << hosts;
  }
  try {
    ranks_on("a:2000000000,b:2000000000");
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"b:2000000000\" makes more ranks"));
  }
}

TEST(Ranks, OfThisHostAreCounted) {
  EXPECT_EQ(ranks_here("b:4,localhost:2,c," + host_name()), 3);
  EXPECT_EQ(ranks_here("b:4,c"), 0);
}

TEST(OtherHosts, AreThoseOfTheListButForThisOne) {
  EXPECT_THAT(other_hosts("b:4,localhost:2,c,b"), ElementsAre("b", "c"));
}

TEST(OtherHosts, AreNoneOfNoList) { EXPECT_TRUE(other_hosts("").empty()); }

TEST(RankZero, IsHereWhereTheFirstHostIsThisOne) {
  EXPECT_TRUE(has_rank_zero_here(""));
  EXPECT_TRUE(has_rank_zero_here(host_name() + ":2,b"));
  EXPECT_TRUE(has_rank_zero_here("localhost,b"));
  EXPECT_TRUE(has_rank_zero_here(host_name() + ".example.org,b"));
  EXPECT_TRUE(has_rank_zero_here("127.0.0.1,b"));
  EXPECT_FALSE(has_rank_zero_here("192.0.2.1,b"));  // an address of documents
  EXPECT_FALSE(has_rank_zero_here(host_name() + "2,b"));
  EXPECT_FALSE(has_rank_zero_here("b:2," + host_name()));
}

}  // namespace
}  // namespace lockstep::launcher
