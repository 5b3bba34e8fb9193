// SPDX-License-Identifier: Apache-2.0
#include "comm/group/launch_environment.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "comm/group/world.h"
#include "runtime/base/cores.h"
#include "runtime/base/error.h"

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
                                      "SLURM_JOB_ID",
                                      "SLURM_STEP_ID",
                                      "SLURM_STEP_NUM_TASKS",
                                      "SLURM_NTASKS",
                                      "SLURM_PROCID",
                                      "SLURM_LOCALID",
                                      "SLURM_NODEID",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_STEP_NODELIST",
                                      "SLURM_CPUS_PER_TASK",
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

TEST_F(LaunchedWith, FewerCoresThanItsStarterARankIsBound) {
  launch({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(own_cores(launch_environment()), usable_cores() / 2);
  cpu_set_t all, one;
  CPU_ZERO(&one);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one core";
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(own_cores(launch_environment()), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

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

TEST_F(LaunchedWith, TasksOfSlurmTakeTheCoresThatTheyWereGiven) {
  const std::map<std::string, std::string> task{
      {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}};
  launch(task);
  EXPECT_EQ(own_cores(launch_environment()), usable_cores() / 2);
  setenv("SLURM_CPUS_PER_TASK", "1", 1);
  EXPECT_EQ(own_cores(launch_environment()), 1);
  setenv("SLURM_CPUS_PER_TASK", "100000", 1);
  EXPECT_EQ(own_cores(launch_environment()), usable_cores());
}

TEST_F(LaunchedWith, ATaskOfSlurmBeyondItsStepIsRefused) {
  launch({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "3"}});
  try {
    launch_environment();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("SLURM_PROCID is 3, and SLURM_STEP_NUM_TASKS is 2"));
  }
}

TEST_F(LaunchedWith, WhatPromisesNoOtherRankIsALoneProcess) {
  const std::map<std::string, std::map<std::string, std::string>> cases{
      {"salloc's shell", {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}}},
      {"batch script", {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}},
      {"salloc's shell in an interactive step",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "4294967290"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "8"},
        {"SLURM_PROCID", "0"}}},
      {"srun --pty",
       {{"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "1"},
        {"SLURM_PROCID", "0"},
        {"PMIX_RANK", "0"}}},
      {"a world of one", {{"WORLD_SIZE", "1"}}},
      {"the first rank of nobody", {{"RANK", "0"}}},
  };
  for (const auto& [name, variables] : cases) {
    SCOPED_TRACE(name);
    launch(variables);
    expect(Launcher::kNone, 0, 1, 0, 1);
    EXPECT_EQ(World::from_environment().size(), 1);
  }
}

TEST_F(LaunchedWith, APromiseOfOtherRanksWithoutWhatJoiningNeedsIsRefused) {
  struct Case {
    std::map<std::string, std::string> variables;
    std::vector<std::string> named;
  };
  const std::vector<Case> cases{
      {{{"WORLD_SIZE", "4"}}, {"variable RANK is not set", "torchrun sets RANK"}},
      {{{"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}, {"variable RANK is not set"}},
      {{{"RANK", "1"}}, {"variable WORLD_SIZE is not set"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}},
       {"variable MASTER_ADDR is not set"}},
      {{{"SLURM_NTASKS", "4"}},
       {"SLURM_NTASKS is 4, but SLURM_JOB_ID and SLURM_STEP_ID are not set", "Start the ranks with srun"}},
      {{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "3"}},
       {"SLURM_NTASKS is 4 and SLURM_PROCID is 3, but SLURM_STEP_ID is not set"}},
      {{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}},
       {"variable SLURM_STEP_NODELIST is not set", "hand all of Slurm's variables on"}},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "a"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}},
       {"variable SLURM_JOB_ID is not set"}},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}, {"PMI_RANK", "1"}, {"PMI_FD", "9"}},
       {"srun was told --mpi=pmi2", "PMIX_RANK is not", "Start the ranks with srun --mpi=pmix, or with --mpi=none"}},
      {{{"WORLD_SIZE", "four"}}, {"WORLD_SIZE is \"four\""}},
  };
  for (const auto& [variables, named] : cases) {
    SCOPED_TRACE(named.front());
    launch(variables);
    try {
      World::from_environment();
      ADD_FAILURE() << "each task would train alone";
    } catch (const UsageError& error) {
      for (const std::string& part : named) {
        EXPECT_THAT(error.what() + ("\n" + error.advice()), testing::HasSubstr(part));
      }
    }
  }
}

TEST_F(LaunchedWith, SlurmsOwnTasksComeBeforeAWorldSizeAlone) {
  launch({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}, {"WORLD_SIZE", "4"}});
  expect(Launcher::kSlurm, 2, 4, 0, 1);
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
  } catch (const UsageError& error) {
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
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("variable " + name + " is not set"));
      EXPECT_THAT(error.advice(), testing::HasSubstr("torchrun sets RANK"));
    }
  }
}

TEST_F(LaunchedWith, TorchrunsRanksBeyondTheirCountAreRefused) {
  launch({{"RANK", "4"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}});
  try {
    launch_environment();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("RANK is 4, and WORLD_SIZE is 4"));
  }
}

TEST_F(LaunchedWith, OneRankOfTorchrunsIsALoneProcess) {
  launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}});
  EXPECT_EQ(World::from_environment().communicator()->description(), "self");
}

}  // namespace
}  // namespace lockstep::comm
