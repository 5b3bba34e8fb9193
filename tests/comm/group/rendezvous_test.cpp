// SPDX-License-Identifier: Apache-2.0
// Where tasks of Slurm's steps meet.
#include "comm/group/tcp/rendezvous.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

class StepOfSlurm : public testing::Test {
 protected:
  StepOfSlurm() { set({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "n[3-4]"}}); }
  ~StepOfSlurm() override {
    for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "SLURM_RESTART_COUNT",
                             "MASTER_ADDR", "MASTER_PORT", "LOCKSTEP_MASTER_PORT", "LOCKSTEP_SECRET"}) {
      unsetenv(name);
    }
  }
  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  /// Of a task of two, on one node or on two.
  static LaunchEnvironment task(int rank, int local_size = 2) {
    return {LaunchEnvironment::Launcher::kSlurm, rank, 2, rank % local_size, local_size};
  }
  static TcpRendezvous place(int local_size = 2) { return TcpRendezvous::from_environment(task(0, local_size)); }
};

TEST_F(StepOfSlurm, MeetsOnTheFirstHostOfItsList) {
  EXPECT_EQ(place(1).address, "n3");
  EXPECT_EQ(place(2).address, "") << "all are on this machine";
  EXPECT_TRUE(place().named);
}

TEST_F(StepOfSlurm, MeetsAtPortsOfItsOwnRange) {
  std::set<int> first_ports;
  for (int job = 1; job <= 100; ++job) {
    set({{"SLURM_JOB_ID", std::to_string(job)}});
    const TcpRendezvous where = place();
    ASSERT_EQ(where.ports.size(), static_cast<std::size_t>(TcpRendezvous::kPorts));
    EXPECT_EQ(where.ports, place().ports);
    EXPECT_GE(where.ports.front(), 20000);
    EXPECT_LE(where.ports.back(), 24095);
    first_ports.insert(where.ports.front());
  }
  EXPECT_GT(first_ports.size(), 50u);
}

TEST_F(StepOfSlurm, MeetsWhereTheUserSays) {
  set({{"MASTER_ADDR", "elsewhere"}, {"MASTER_PORT", "1234"}});
  EXPECT_EQ(place(1).address, "elsewhere");
  EXPECT_EQ(place(1).ports.front(), 1234);
  set({{"LOCKSTEP_MASTER_PORT", "4321"}});
  EXPECT_EQ(place(1).ports, std::vector<std::uint16_t>{4321});
}

TEST_F(StepOfSlurm, HasAKeyOfItsOwn) {
  const RunKey key = place().key;
  EXPECT_EQ(place(1).key, key);
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", "LOCKSTEP_SECRET"}) {
    const char* const before = std::getenv(name);
    const std::string kept = before == nullptr ? "" : before;
    set({{name, "1"}});
    EXPECT_NE(place().key, key) << name;
    kept.empty() ? unsetenv(name) : setenv(name, kept.c_str(), 1);
  }
  EXPECT_EQ(place().key, key);
}

/// Whether torchrun's count of restarts is part of the key on so many nodes.
bool tells_restarts_apart(int nodes) {
  const std::map<std::string, std::string> variables{{"MASTER_ADDR", "a"},
                                                     {"MASTER_PORT", "29500"},
                                                     {"TORCHELASTIC_RUN_ID", "run"},
                                                     {"GROUP_WORLD_SIZE", std::to_string(nodes)}};
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::set<RunKey> keys;
  for (const char* count : {"0", "1"}) {
    setenv("TORCHELASTIC_RESTART_COUNT", count, 1);
    keys.insert(
        TcpRendezvous::from_environment({LaunchEnvironment::Launcher::kTorchrun, 0, 2, 0, nodes == 1 ? 2 : 1}).key);
  }
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  unsetenv("TORCHELASTIC_RESTART_COUNT");
  return keys.size() == 2;
}

TEST(RunOfTorchrun, IsOneHoweverOftenEachOfSeveralNodesHasStartedItsRanks) {
  EXPECT_TRUE(tells_restarts_apart(1));
  EXPECT_FALSE(tells_restarts_apart(2));
}

TEST(RunOfMpirun, NeedsAnAddressWhereThereAreOtherHosts) {
  unsetenv("MASTER_ADDR");
  const LaunchEnvironment on_two{LaunchEnvironment::Launcher::kMpi, 0, 2, 0, 1};
  EXPECT_EQ(TcpRendezvous::from_environment({LaunchEnvironment::Launcher::kMpi, 0, 2, 0, 2}).address, "");
  EXPECT_THROW(TcpRendezvous::from_environment(on_two), UsageError);
  setenv("MASTER_ADDR", "a", 1);
  const TcpRendezvous one = TcpRendezvous::from_environment(on_two);
  EXPECT_EQ(one.address, "a");
  EXPECT_FALSE(one.named);
  setenv("PMIX_NAMESPACE", "another", 1);
  EXPECT_NE(TcpRendezvous::from_environment(on_two).key, one.key);
  for (const char* name : {"MASTER_ADDR", "PMIX_NAMESPACE"}) unsetenv(name);
}

TEST_F(StepOfSlurm, AListThatIsNoneIsNamed) {
  set({{"SLURM_STEP_NODELIST", "n[3-"}});
  EXPECT_THROW(place(1), UsageError);
  set({{"MASTER_ADDR", "n3"}});
  EXPECT_EQ(place(1).address, "n3");
}

}  // namespace
}  // namespace lockstep::comm
