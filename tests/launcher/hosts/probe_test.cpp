// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/probe.h"

#include <gmock/gmock.h>

namespace lockstep::launcher {
namespace {

ProbeAddress here(const ProbeTarget& target) { return {"127.0.0.1", target.port(), target.id()}; }

TEST(Probe, ReachesAndMeasuresATarget) {
  const ProbeTarget target;
  EXPECT_EQ(unreachable(here(target)), "");
  const LinkSpeed speed = measure(here(target));
  ASSERT_EQ(speed.reason, "");
  EXPECT_GT(speed.latency_us, 0);
  EXPECT_GT(speed.mbit_per_s, 0);
  EXPECT_GE(speed.mtu, 576);
}

TEST(Probe, TellsAnotherProgramFromItsTarget) {
  const ProbeTarget target, other;
  ProbeAddress address = here(other);
  address.id = target.id();
  EXPECT_EQ(unreachable(address), "another host or program answers there");
  EXPECT_EQ(measure(address).reason, "another host or program answers there");
}

TEST(Probe, SaysWhyNothingIsReached) {
  std::uint16_t port = 0;
  {
    const ProbeTarget gone;
    port = gone.port();
  }
  EXPECT_THAT(unreachable({"127.0.0.1", port, 0}), testing::HasSubstr("refused"));
  EXPECT_NE(unreachable({"no.such.host.invalid", port, 0}), "");
}

}  // namespace
}  // namespace lockstep::launcher
