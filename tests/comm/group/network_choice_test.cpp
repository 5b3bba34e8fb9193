// SPDX-License-Identifier: Apache-2.0
#include "comm/group/network_choice.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"

namespace lockstep::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kOfLibraries[] = {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude",
                                        "NCCL_SOCKET_IFNAME"};

class NetworkChoice : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    unsetenv(kInterfaceVariable);
    for (const char* name : kOfLibraries) unsetenv(name);
  }
};

TEST_F(NetworkChoice, OfNoneLeavesTheLibrariesAlone) {
  setenv("NCCL_SOCKET_IFNAME", "mine", 1);
  apply_network_choice();
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "mine");
  EXPECT_EQ(std::getenv("OMPI_MCA_btl_tcp_if_include"), nullptr);
  EXPECT_EQ(chosen_address(), "");
  EXPECT_THAT(chosen_interfaces(), IsEmpty());
}

TEST_F(NetworkChoice, OfANetworkIsAnInterfacesNameToEachLibrary) {
  setenv(kInterfaceVariable, "127.0.0.0/8", 1);
  setenv("OMPI_MCA_btl_tcp_if_exclude", "eth9", 1);
  apply_network_choice();
  EXPECT_STREQ(std::getenv("OMPI_MCA_btl_tcp_if_include"), "lo");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
  EXPECT_EQ(std::getenv("OMPI_MCA_btl_tcp_if_exclude"), nullptr);
  EXPECT_EQ(chosen_address(), "127.0.0.1");
}

TEST_F(NetworkChoice, IsTheOneAddressThatOthersAreTold) {
  setenv(kInterfaceVariable, "lo", 1);
  EXPECT_THAT(addresses_of_this_host(), ElementsAre("127.0.0.1"));
}

TEST(Addresses, AreThoseThatMayLeadOutTheMostPromisingFirst) {
  const auto way = [](const char* name, const char* address) {
    return Interface{.name = name, .address = address, .up = true, .has_link = true};
  };
  Interface loopback = way("lo", "127.0.0.1");
  loopback.is_loopback = true;
  Interface docker = way("docker0", "172.17.0.1");
  docker.is_internal = true;
  Interface off = way("eth3", "10.0.3.1");
  off.up = false;
  Interface unplugged = way("eth4", "10.0.4.1");
  unplugged.has_link = false;
  const std::vector<Interface> all{loopback,
                                   docker,
                                   way("eth0", "10.0.0.1"),
                                   way("eth1", "10.0.1.1"),
                                   way("eth2", "10.0.2.1"),
                                   way("eth2", "fd00::2"),
                                   off,
                                   unplugged};
  const auto speed = [](const Interface& each) {
    return each.name == "eth2" ? 100000 : each.name == "eth1" ? 10000 : -1;
  };
  EXPECT_THAT(addresses_of(all, speed), ElementsAre("10.0.2.1", "fd00::2", "10.0.1.1", "10.0.0.1", "172.17.0.1"));
}

TEST_F(NetworkChoice, OfWhatThisHostLacksListsWhatItHas) {
  for (const char* wrong : {"nowhere0", "255.255.255.255/32", ""}) {
    setenv(kInterfaceVariable, wrong, 1);
    try {
      apply_network_choice();
      FAIL() << wrong;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("\"") + wrong + "\" on " + host_name()));
      EXPECT_THAT(error.what(), HasSubstr("\n  lo 127.0.0.1/8"));
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
