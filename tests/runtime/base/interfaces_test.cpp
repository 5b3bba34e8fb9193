// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/interfaces.h"

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<Interface> kHost{
    {.name = "lo", .address = "127.0.0.1", .prefix = 8, .up = true, .has_link = true, .is_loopback = true},
    {.name = "eth0", .address = "10.77.0.2", .prefix = 24, .up = true, .has_link = true},
    {.name = "eth0", .address = "fd00:1::2", .prefix = 64, .up = true, .has_link = true},
    {.name = "eth1", .address = "10.78.0.2", .prefix = 20},
    {.name = "docker0", .address = "172.17.0.1", .prefix = 16, .up = true, .is_internal = true}};

std::vector<std::string> found(const std::string& wanted) {
  std::vector<std::string> addresses;
  for (const Interface& each : interfaces_of(wanted, kHost)) addresses.push_back(each.address);
  return addresses;
}

TEST(Interfaces, AreFoundByTheirName) {
  EXPECT_THAT(found("eth1"), ElementsAre("10.78.0.2"));
  EXPECT_THAT(found("eth0"), ElementsAre("10.77.0.2", "fd00:1::2"));
  EXPECT_THAT(found("eth"), IsEmpty());
  EXPECT_THAT(found(""), IsEmpty());
}

TEST(Interfaces, AreFoundByTheirNetworkOrAWiderOne) {
  EXPECT_THAT(found("10.77.0.0/24"), ElementsAre("10.77.0.2"));
  EXPECT_THAT(found("10.77.0.9/24"), ElementsAre("10.77.0.2"));
  EXPECT_THAT(found("10.0.0.0/8"), ElementsAre("10.77.0.2", "10.78.0.2"));
  EXPECT_THAT(found("fd00:1::/32"), ElementsAre("fd00:1::2"));
  EXPECT_THAT(found("10.77.0.3/32"), IsEmpty());
}

TEST(Interfaces, WhatIsNoNetworkIsNone) {
  for (const char* wrong :
       {"10.77.0.2", "10.77.0.0/", "10.77.0.0/33", "10.77.0.0/-1", "10.77.0.0/24x", "10.77/16", "/24"}) {
    EXPECT_THAT(found(wrong), IsEmpty()) << wrong;
  }
}

TEST(Interfaces, TellTheirNetworkAndTheirState) {
  EXPECT_EQ(kHost[1].str(), "eth0 10.77.0.2/24");
  EXPECT_EQ(kHost[2].network(), "fd00:1::/64");
  EXPECT_EQ(kHost[3].network(), "10.78.0.0/20");
  EXPECT_EQ(kHost[3].str(), "eth1 10.78.0.2/20, down");
  EXPECT_EQ(kHost[4].str(), "docker0 172.17.0.1/16, no link, inside this host");
  EXPECT_EQ(list_of({kHost[1], kHost[3]}, "  "), "  eth0 10.77.0.2/24\n  eth1 10.78.0.2/20, down");
}

TEST(Interfaces, OfThisMachineHaveALoopback) {
  const std::vector<Interface> own = interfaces_of("127.0.0.0/8", interfaces());
  ASSERT_FALSE(own.empty());
  EXPECT_TRUE(own.front().is_loopback);
  EXPECT_EQ(own.front().network(), "127.0.0.0/8");
}

}  // namespace
}  // namespace lockstep
