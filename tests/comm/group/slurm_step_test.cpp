// SPDX-License-Identifier: Apache-2.0
#include "comm/group/slurm_step.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

TEST(SlurmStep, TheFirstHostOfAListIsRank0s) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a", "a"},
      {"a,b", "a"},
      {"n[1-3,7],m02", "n1"},
      {"n[7,1-3]", "n7"},
      {"node[007-010]", "node007"},
      {"m02,n[1-3]", "m02"},
      {"gpu-a[12].cluster-1.example", "gpu-a12.cluster-1.example"},
      {"rack[0-1]n[03-10],x", "rack0n03"},
      {"rack[2,5]-ib,x", "rack2-ib"},
      {"[4-5]", "4"},
  };
  for (const auto& [hosts, first] : cases) EXPECT_EQ(first_host_of(hosts), first) << hosts;
}

TEST(SlurmStep, WhatIsNoListOfHostsIsNamed) {
  for (const char* wrong : {"", ",a", "n[1-3", "n[", "n[]", "n[-3]", "n]1", "n[1]]", "[,1]"}) {
    try {
      ADD_FAILURE() << wrong << ": " << first_host_of(wrong);
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("SLURM_STEP_NODELIST is \"" + std::string(wrong) + "\""));
      EXPECT_THAT(error.advice(), testing::HasSubstr("MASTER_ADDR"));
    }
  }
}

}  // namespace
}  // namespace lockstep::comm
