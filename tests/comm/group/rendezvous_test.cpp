// SPDX-License-Identifier: Apache-2.0
// Where tasks of Slurm's steps meet, and ranks of mpirun.
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

using testing::ElementsAre;
using testing::IsEmpty;

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
  EXPECT_THAT(place(1).addresses, ElementsAre("n3"));
  EXPECT_THAT(place(2).addresses, IsEmpty()) << "all are on this machine";
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
  EXPECT_THAT(place(1).addresses, ElementsAre("elsewhere"));
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

// Ranks of mpirun, on one host or on several.
LaunchEnvironment rank_of_mpirun(int rank, int local_size) {
  return {LaunchEnvironment::Launcher::kMpi, rank, 2, rank % local_size, local_size};
}

TEST(RunOfMpirun, IsFoundByWhatRank0Says) {
  const TcpRendezvous first = TcpRendezvous::on_this_host(rank_of_mpirun(0, 2));
  const TcpRendezvous other = TcpRendezvous::from_word(rank_of_mpirun(1, 2), first.word(41233));
  EXPECT_EQ(other.ports, std::vector<std::uint16_t>{41233});
  EXPECT_THAT(other.addresses, IsEmpty()) << "all are on this machine";
  EXPECT_EQ(other.key, first.key);
  EXPECT_TRUE(first.named && other.named);
  EXPECT_NE(TcpRendezvous::on_this_host(rank_of_mpirun(0, 2)).key, first.key) << "each start is a run of its own";
}

TEST(RunOfMpirun, IsFoundAtTheAddressesOfRank0sHost) {
  setenv("LOCKSTEP_INTERFACE", "lo", 1);
  const TcpRendezvous first = TcpRendezvous::on_this_host(rank_of_mpirun(0, 1));
  unsetenv("LOCKSTEP_INTERFACE");
  EXPECT_THAT(first.addresses, ElementsAre("127.0.0.1"));
  const TcpRendezvous other = TcpRendezvous::from_word(rank_of_mpirun(1, 1), first.word(41233) + " fd00::1");
  EXPECT_THAT(other.addresses, ElementsAre("127.0.0.1", "fd00::1"));
  EXPECT_EQ(other.str(), "127.0.0.1 or fd00::1, port 41233");
}

TEST(RunOfMpirun, IsFoundFirstWhereTheUserSays) {
  setenv("LOCKSTEP_INTERFACE", "lo", 1);
  setenv("MASTER_ADDR", "published", 1);
  EXPECT_THAT(TcpRendezvous::on_this_host(rank_of_mpirun(0, 1)).addresses, ElementsAre("published", "127.0.0.1"));
  EXPECT_THAT(TcpRendezvous::on_this_host(rank_of_mpirun(0, 2)).addresses, IsEmpty()) << "all are on this machine";
  for (const char* name : {"LOCKSTEP_INTERFACE", "MASTER_ADDR"}) unsetenv(name);
}

TEST(RunOfMpirun, HasAKeyThatAlsoTakesTheUsersSecret) {
  const std::string word = "41233 name";
  const RunKey open = TcpRendezvous::from_word(rank_of_mpirun(1, 2), word).key;
  setenv("LOCKSTEP_SECRET", "known to the ranks", 1);
  EXPECT_NE(TcpRendezvous::from_word(rank_of_mpirun(1, 2), word).key, open);
  unsetenv("LOCKSTEP_SECRET");
}

TEST(RunOfMpirun, IsNotFoundByAWordOfAnotherKind) {
  for (const char* wrong : {"", "nowhere", "70000 name", "41233"}) {
    EXPECT_THROW(TcpRendezvous::from_word(rank_of_mpirun(1, 2), wrong), PeerError) << wrong;
  }
}

TEST(RunOfMpirun, ListensAtThePortThatTheUserNames) {
  setenv("LOCKSTEP_MASTER_PORT", "4321", 1);
  EXPECT_EQ(TcpRendezvous::on_this_host(rank_of_mpirun(0, 2)).ports, std::vector<std::uint16_t>{4321});
  EXPECT_EQ(TcpRendezvous::from_word(rank_of_mpirun(1, 2), "4321 name").direct_ports.front(), 4322);
  unsetenv("LOCKSTEP_MASTER_PORT");
}

TEST_F(StepOfSlurm, AListThatIsNoneIsNamed) {
  set({{"SLURM_STEP_NODELIST", "n[3-"}});
  EXPECT_THROW(place(1), UsageError);
  set({{"MASTER_ADDR", "n3"}});
  EXPECT_THAT(place(1).addresses, ElementsAre("n3"));
}

}  // namespace
}  // namespace lockstep::comm
