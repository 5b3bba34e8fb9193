// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

using Launcher = LaunchEnvironment::Launcher;

class TransportChoice : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override { unsetenv(kTransportVariable); }
};

TEST_F(TransportChoice, OfNobodyIsTheLaunchers) {
  EXPECT_FALSE(chooses_tcp());
  EXPECT_FALSE(joins_over_tcp(Launcher::kMpi));
  EXPECT_TRUE(joins_over_tcp(Launcher::kTorchrun));
}

TEST_F(TransportChoice, OfTcpHoldsForMpirunToo) {
  setenv(kTransportVariable, "tcp", 1);
  EXPECT_TRUE(chooses_tcp());
  EXPECT_TRUE(joins_over_tcp(Launcher::kMpi));
}

TEST_F(TransportChoice, OfMpiIsRefusedWhereTheLauncherStartsNone) {
  setenv(kTransportVariable, "mpi", 1);
  EXPECT_FALSE(joins_over_tcp(Launcher::kMpi));
  EXPECT_THROW(joins_over_tcp(Launcher::kTorchrun), UsageError);
}

TEST_F(TransportChoice, OfAnotherNameIsRefused) {
  setenv(kTransportVariable, "ucx", 1);
  EXPECT_THROW(chooses_tcp(), UsageError);
}

}  // namespace
}  // namespace lockstep::comm
