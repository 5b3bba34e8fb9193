// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "comm/group/communicator.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {
namespace {

using Launcher = LaunchEnvironment::Launcher;

constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "LOCAL_WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "SLURM_STEP_ID",
                                      "SLURM_NTASKS",
                                      "SLURM_PROCID",
                                      "SLURM_LOCALID",
                                      "SLURM_NODEID",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "PMIX_RANK",
                                      "PMI_RANK",
                                      "PMI_FD"};

/// launch_environment() where a launcher has set these variables and no other.
class LaunchedWith : public testing::Test {
 protected:
  void launch(const std::map<std::string, std::string>& variables) {
    for (const char* name : kVariables) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override { launch({}); }

  void expect(Launcher launcher, int rank, int size, int local_rank, int local_size) {
    const LaunchEnvironment found = launch_environment();
    EXPECT_EQ(found.launcher, launcher);
    EXPECT_EQ(found.rank, rank);
    EXPECT_EQ(found.size, size);
    EXPECT_EQ(found.local_rank, local_rank);
    EXPECT_EQ(found.local_size, local_size);
  }
};

TEST_F(LaunchedWith, NothingIsALoneProcess) {
  launch({});
  expect(Launcher::kNone, 0, 1, 0, 1);
  const World world = World::from_environment();
  EXPECT_EQ(world.size(), 1);
  EXPECT_EQ(world.local_size(), 1);
  EXPECT_EQ(world.communicator()->description(), "self");
}

TEST_F(LaunchedWith, OpenMpi) {
  launch({{"OMPI_COMM_WORLD_RANK", "5"},
          {"OMPI_COMM_WORLD_SIZE", "8"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  expect(Launcher::kMpi, 5, 8, 1, 4);
}

TEST_F(LaunchedWith, SlurmStep) {
  launch({{"SLURM_STEP_ID", "0"},
          {"SLURM_NTASKS", "11"},
          {"SLURM_PROCID", "9"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "2"},
          {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}});
  expect(Launcher::kSlurm, 9, 11, 1, 3);
  setenv("SLURM_NODEID", "1", 1);
  expect(Launcher::kSlurm, 9, 11, 1, 4);
}

TEST_F(LaunchedWith, SlurmBatchScriptIsALoneProcess) {
  launch({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}});
  expect(Launcher::kNone, 0, 1, 0, 1);
}

TEST_F(LaunchedWith, TorchrunInsideSlurm) {
  launch({{"SLURM_STEP_ID", "0"},
          {"SLURM_NTASKS", "2"},
          {"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"}});
  expect(Launcher::kTorchrun, 3, 4, 1, 2);
}

TEST_F(LaunchedWith, TextWhereACountBelongsIsNamed) {
  launch({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "two"}});
  try {
    launch_environment();
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("OMPI_COMM_WORLD_SIZE is \"two\""));
  }
}

TEST_F(LaunchedWith, HalfOfTorchrunsVariablesNamesTheOtherHalf) {
  const std::map<std::string, std::string> all{{"RANK", "0"},
                                               {"WORLD_SIZE", "4"},
                                               {"LOCAL_RANK", "0"},
                                               {"LOCAL_WORLD_SIZE", "4"},
                                               {"MASTER_ADDR", "localhost"},
                                               {"MASTER_PORT", "1"}};
  for (const auto& [name, value] : all) {
    std::map<std::string, std::string> some = all;
    some.erase(name);
    launch(some);
    try {
      World::from_environment();
      FAIL() << name;
    } catch (const EnvironmentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("variable " + name + " is not set"));
      EXPECT_THAT(error.advice(), testing::HasSubstr("torchrun sets RANK"));
    }
  }
  // One alone is another program's.
  launch({{"WORLD_SIZE", "4"}});
  expect(Launcher::kNone, 0, 1, 0, 1);
}

TEST_F(LaunchedWith, TorchrunsRanksBeyondTheirCountAreRefused) {
  launch({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}});
  try {
    launch_environment();
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("RANK is 4, and WORLD_SIZE is 4"));
  }
}

TEST_F(LaunchedWith, OneRankOfTorchrunsIsALoneProcess) {
  launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(World::from_environment().communicator()->description(), "self");
}

TEST_F(LaunchedWith, SrunThatStartsNoMpiSaysSo) {
  launch({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}});
  try {
    World::from_environment();
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("promises 2 ranks"));
    EXPECT_THAT(error.advice(), testing::HasSubstr("srun --mpi=pmix"));
  }
}

}  // namespace
}  // namespace lockstep::comm
