// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/network_findings.h"

#include <gmock/gmock.h>

namespace lockstep::launcher {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Json interface_of(const std::string& name, const std::string& address, const std::string& network, bool up = true) {
  return {{"name", name}, {"address", address}, {"network", network}, {"up", up}, {"loopback", name == "lo"}};
}

/// Host number `number`, with a network that leads to the others, another one, and Docker's.
Json host(const std::string& name, int number) {
  const std::string own = std::to_string(number);
  return {
      {"host", name},
      {"answers", true},
      {"interfaces",
       {interface_of("lo", "127.0.0.1", "127.0.0.0/8"), interface_of("eth0", "10.0.0." + own, "10.0.0.0/24"),
        interface_of("eth1", "10.1.0." + own, "10.1.0.0/24"), interface_of("docker0", "172.17.0.1", "172.17.0.0/16")}}};
}

Json way(const std::string& from, const std::string& to, const Json& network, const std::string& reason,
         const Json& speed = nullptr) {
  return {{"from", from},
          {"to", to},
          {"network", network},
          {"address", "there"},
          {"connects", reason.empty()},
          {"reason", reason},
          {"mbit_per_s", speed}};
}

/// Both directions.
void add(Json& ways, const Json& network, const std::string& reason, const Json& speed = nullptr) {
  ways.push_back(way("a", "b", network, reason, speed));
  ways.push_back(way("b", "a", network, reason));
}

Json judged(const Json& hosts, const Json& ways, Json& findings) {
  Json examination{{"hosts", hosts}, {"ways", ways}};
  findings = Json::array();
  add_network_findings(examination, findings);
  return examination;
}

TEST(SharedNetworks, AreThoseInWhichBothHaveAnAddressOfTheirOwn) {
  EXPECT_THAT(shared_networks(host("a", 1), host("b", 2)),
              ElementsAre(Pair("10.0.0.0/24", "10.0.0.2"), Pair("10.1.0.0/24", "10.1.0.2")));
  Json down = host("b", 2);
  down["interfaces"][1]["up"] = false;
  EXPECT_THAT(shared_networks(host("a", 1), down), ElementsAre(Pair("10.1.0.0/24", "10.1.0.2")));
  EXPECT_THAT(shared_networks(down, host("a", 1)), ElementsAre(Pair("10.1.0.0/24", "10.1.0.1")));
}

TEST(NetworkFindings, NameTheNetworkThatLeadsNowhereAndTheOneThatWorks) {
  Json ways = Json::array(), findings;
  add(ways, nullptr, "");
  add(ways, "10.0.0.0/24", "", 940);
  add(ways, "10.1.0.0/24", "timed out");
  const Json found = judged({host("a", 1), host("b", 2)}, ways, findings);
  EXPECT_EQ(found["use"], "10.0.0.0/24");
  ASSERT_EQ(findings.size(), 3U) << findings;
  EXPECT_EQ(findings[0]["missing"], "a connection from a to b through 10.1.0.0/24 (there: timed out)");
  EXPECT_THAT(findings[0]["advice"].get<std::string>(), HasSubstr("--interface 10.0.0.0/24"));
  EXPECT_EQ(findings[2]["missing"],
            "addresses of their own in 172.17.0.0/16: 172.17.0.1 is that of docker0 of a and docker0 of b");
}

TEST(NetworkFindings, TakeTheFastestOfTheNetworksThatWork) {
  Json ways = Json::array(), findings;
  add(ways, "10.0.0.0/24", "", 940);
  add(ways, "10.1.0.0/24", "", 9400);
  EXPECT_EQ(judged({host("a", 1), host("b", 2)}, ways, findings)["use"], "10.1.0.0/24");
}

TEST(NetworkFindings, TakeANetworkInWhichAHostHasTwoAddresses) {
  Json ways = Json::array(), findings;
  add(ways, "10.0.0.0/24", "", 940);
  ways.push_back(way("a", "b", "10.0.0.0/24", ""));  // to its second address
  Json second = host("b", 2);
  second["interfaces"].push_back(interface_of("eth0:1", "10.0.0.22", "10.0.0.0/24"));
  EXPECT_EQ(judged({host("a", 1), second}, ways, findings)["use"], "10.0.0.0/24");
}

TEST(NetworkFindings, LeaveOutTheWaysOfAHostThatHasStoppedAnswering) {
  Json ways = Json::array(), findings;
  add(ways, "10.0.0.0/24", "", 940);
  ways.push_back(way("a", "c", "10.0.0.0/24", ""));
  const Json off{{"host", "c"}, {"answers", false}, {"interfaces", Json::array()}};
  EXPECT_EQ(judged({host("a", 1), host("b", 2), off}, ways, findings)["use"], "10.0.0.0/24");
}

TEST(NetworkFindings, OfAFirewallAreOneAPairAndDirection) {
  Json ways = Json::array(), findings;
  add(ways, nullptr, "timed out");
  add(ways, "10.0.0.0/24", "timed out");
  Json first = host("a", 1), second = host("b", 2);
  for (Json* each : {&first, &second}) each->at("interfaces").erase(3);
  EXPECT_TRUE(judged({first, second}, ways, findings)["use"].is_null());
  ASSERT_EQ(findings.size(), 2U) << findings;
  EXPECT_EQ(findings[0]["missing"], "a connection from a to b at a free port (timed out)");
  EXPECT_EQ(findings[1]["missing"], "a connection from b to a at a free port (timed out)");
  EXPECT_THAT(findings[0]["advice"].get<std::string>(), HasSubstr("Open the ports"));
}

TEST(NetworkFindings, ANetworkThatOneHostLacksIsNotTheOneToUse) {
  Json ways = Json::array(), findings;
  add(ways, nullptr, "");
  add(ways, "10.0.0.0/24", "", 940);
  Json third = host("c", 3);
  third["interfaces"].erase(1);
  EXPECT_TRUE(judged({host("a", 1), host("b", 2), third}, ways, findings)["use"].is_null());
}

TEST(NetworkFindings, OfHostsThatAgreeAreNone) {
  Json ways = Json::array(), findings;
  add(ways, nullptr, "");
  add(ways, "10.0.0.0/24", "", 940);
  Json first = host("a", 1), second = host("b", 2),
       off{{"host", "c"}, {"answers", false}, {"interfaces", Json::array()}};
  for (Json* each : {&first, &second}) {
    each->at("interfaces").erase(3);
    each->at("interfaces").erase(2);
  }
  EXPECT_EQ(judged({first, second, off}, ways, findings)["use"], "10.0.0.0/24");
  EXPECT_THAT(findings, IsEmpty());
}

}  // namespace
}  // namespace lockstep::launcher
