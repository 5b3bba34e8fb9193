// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport_choice.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "comm/group/versions.h"
#include "runtime/base/error.h"
#include "tests/support/folder.h"

namespace lockstep::comm {
namespace {

using Launcher = LaunchEnvironment::Launcher;
using testing::HasSubstr;

/// On which rank 0 has said something, or what this rank says counts.
class Board final : public LaunchBoard {
 public:
  explicit Board(std::string word = "") : word_(std::move(word)) {}
  std::string word_of_rank_0(const std::string& subject, const std::string& own) override {
    EXPECT_EQ(subject, "transport");
    return word_.empty() ? own : word_;
  }

 private:
  std::string word_;
};

/// Rank 1 of two, on hosts of their own or on one.
LaunchEnvironment rank_of(Launcher launcher, int local_size = 1) { return {launcher, 1, 2, 0, local_size}; }

class TransportChoice : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* name : {kTransportVariable, "PMIX_RANK"}) unsetenv(name);
  }
  Board board_;
};

TEST_F(TransportChoice, BetweenHostsOfMpirunIsTcpWithoutRdma) {
  EXPECT_TRUE(needs_board(rank_of(Launcher::kMpi)));
  EXPECT_EQ(transport_between_hosts(), has_rdma() ? "mpi" : "tcp");
  EXPECT_EQ(joins_over_tcp(rank_of(Launcher::kMpi), &board_), transport_between_hosts() == "tcp");
}

TEST_F(TransportChoice, OfTasksThatSlurmStartsWithPmixIsThatOfMpirun) {
  if (mpi_version().empty()) GTEST_SKIP() << "a build without MPI";
  setenv("PMIX_RANK", "1", 1);
  Board mpi("mpi");
  EXPECT_TRUE(needs_board(rank_of(Launcher::kSlurm)));
  EXPECT_FALSE(joins_over_tcp(rank_of(Launcher::kSlurm), &mpi));
}

TEST_F(TransportChoice, IsRank0sForAll) {
  Board tcp("tcp");
  Board mpi("mpi");
  EXPECT_TRUE(joins_over_tcp(rank_of(Launcher::kMpi), &tcp));
  EXPECT_FALSE(joins_over_tcp(rank_of(Launcher::kMpi), &mpi));
  setenv(kTransportVariable, "tcp", 1);
  EXPECT_TRUE(joins_over_tcp(rank_of(Launcher::kMpi), &tcp));
  try {
    joins_over_tcp(rank_of(Launcher::kMpi), &mpi);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("LOCKSTEP_TRANSPORT is \"tcp\" on rank 1, and rank 0 uses mpi"));
    EXPECT_THAT(error.advice(), HasSubstr("mpirun -x LOCKSTEP_TRANSPORT"));
  }
}

TEST_F(TransportChoice, OnOneHostOfMpirunIsMpi) {
  EXPECT_FALSE(needs_board(rank_of(Launcher::kMpi, 2)));
  EXPECT_FALSE(joins_over_tcp(rank_of(Launcher::kMpi, 2), nullptr));
  setenv(kTransportVariable, "tcp", 1);
  EXPECT_TRUE(needs_board(rank_of(Launcher::kMpi, 2)));
  EXPECT_TRUE(joins_over_tcp(rank_of(Launcher::kMpi, 2), &board_));
}

TEST_F(TransportChoice, OfMpiAsksOtherHostsAlone) {
  setenv(kTransportVariable, "mpi", 1);
  EXPECT_FALSE(needs_board(rank_of(Launcher::kMpi, 2)));
  EXPECT_TRUE(needs_board(rank_of(Launcher::kMpi)));
  EXPECT_FALSE(joins_over_tcp(rank_of(Launcher::kMpi), &board_));
}

TEST_F(TransportChoice, WithoutABoardIsMpi) {
  EXPECT_FALSE(joins_over_tcp(rank_of(Launcher::kMpi), nullptr));
  setenv(kTransportVariable, "tcp", 1);
  EXPECT_THROW(joins_over_tcp(rank_of(Launcher::kMpi), nullptr), UsageError);
}

TEST_F(TransportChoice, IsTcpWhereTheLauncherStartsNoMpi) {
  for (const Launcher launcher : {Launcher::kTorchrun, Launcher::kSlurm}) {
    EXPECT_FALSE(needs_board(rank_of(launcher)));
    EXPECT_TRUE(joins_over_tcp(rank_of(launcher), nullptr));
    setenv(kTransportVariable, "tcp", 1);
    EXPECT_FALSE(needs_board(rank_of(launcher)));
    EXPECT_TRUE(joins_over_tcp(rank_of(launcher), nullptr));
    setenv(kTransportVariable, "mpi", 1);
    EXPECT_THROW(joins_over_tcp(rank_of(launcher), nullptr), UsageError);
    unsetenv(kTransportVariable);
  }
}

TEST_F(TransportChoice, OfAnotherNameIsRefused) {
  setenv(kTransportVariable, "ucx", 1);
  EXPECT_THROW(needs_board(rank_of(Launcher::kMpi)), UsageError);
}

/// As the system lists a card with a port in this state.
void add_card(const std::filesystem::path& root, const std::string& state) {
  const std::filesystem::path port = root / "sys/class/infiniband/mlx5_0/ports/1";
  std::filesystem::create_directories(port);
  std::ofstream(port / "state") << state << "\n";
}

TEST(Rdma, IsWhereACardHasAnActivePortThatMayBeUsed) {
  const Folder root;
  EXPECT_FALSE(has_rdma(root.path()));
  add_card(root.path(), "4: ACTIVE");
  EXPECT_FALSE(has_rdma(root.path())) << "a container sees it and has no device";
  std::filesystem::create_directories(root.path() / "dev/infiniband/uverbs0");
  EXPECT_TRUE(has_rdma(root.path()));
  add_card(root.path(), "1: DOWN");
  EXPECT_FALSE(has_rdma(root.path()));
}

TEST(Rdma, IsSlingshotToo) {
  const Folder root;
  std::filesystem::create_directories(root.path() / "sys/class/cxi");
  EXPECT_FALSE(has_rdma(root.path())) << "its driver is there, and no device";
  std::filesystem::create_directories(root.path() / "sys/class/cxi/cxi0");
  EXPECT_TRUE(has_rdma(root.path()));
}

// Without mpirun there is none.
TEST(LaunchersBoard, IsNotWhereNoLauncherIs) {
  for (const char* name : {"PMIX_NAMESPACE", "PMIX_RANK"}) unsetenv(name);
  EXPECT_EQ(launch_board(std::chrono::seconds(1)), nullptr);
}

}  // namespace
}  // namespace lockstep::comm
