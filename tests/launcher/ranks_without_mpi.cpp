// SPDX-License-Identifier: Apache-2.0
// The command with ranks that were started without MPI, in the environment of torchrun or srun.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "comm/group/versions.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

class RanksWithoutMpi : public testing::Test {
 protected:
  static std::vector<std::string> train(const std::string& run, std::vector<std::string> more) {
    std::vector<std::string> arguments{"train", kConvnetJob, "--run-dir", run, "--set", "checkpoint.every_steps=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// torchrun with so many ranks.
  static std::vector<std::string> torchrun(int ranks, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{TORCHRUN_RANKS, std::to_string(ranks), LOCKSTEP_BINARY};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  Ended run(int ranks, const std::vector<std::string>& arguments, const Program::Variables& variables = {}) const {
    return Program(torchrun(ranks, arguments), folder_.path(), variables).wait();
  }
  json summary(const std::string& run) const { return json::parse(read_text(folder_ / (run + "/summary.json"))); }

  Folder folder_;
};

TEST_F(RanksWithoutMpi, TrainToTheBitsOfRanksWithMpi) {
  if (comm::mpi_version().empty()) GTEST_SKIP() << "this build has no MPI to compare with";
  for (const int ranks : {2, 3}) {
    const std::string count = std::to_string(ranks);
    const Ended tcp = run(ranks, train("tcp" + count, {"--set", "train.steps=6"}));
    ASSERT_EQ(tcp.code, 0) << tcp.err;
    EXPECT_THAT(without_warnings(tcp.err), IsEmpty());
    const Ended mpi = lockstep_command(train("mpi" + count, {"--set", "train.steps=6", "--nproc", count}), folder_);
    ASSERT_EQ(mpi.code, 0) << mpi.err;
    EXPECT_EQ(summary("tcp" + count)["world_size"], ranks);
    EXPECT_EQ(summary("tcp" + count)["weights_digest"], summary("mpi" + count)["weights_digest"]);
  }
  const Ended one = run(1, train("one", {"--set", "train.steps=6"}));
  ASSERT_EQ(one.code, 0) << one.err;
  for (const char* ranks : {"tcp2", "tcp3"}) {
    EXPECT_NEAR(summary(ranks)["final_loss"].get<double>(), summary("one")["final_loss"].get<double>(), 1e-3);
  }
  const Ended eval = run(2, {"eval", kConvnetJob, "--checkpoint", "tcp2", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out)["accuracy"], summary("tcp2")["eval"]["accuracy"]);
}

TEST_F(RanksWithoutMpi, OfSlurmTrainToTheBitsOfTorchruns) {
  for (const int ranks : {1, 2, 3}) {
    const std::string count = std::to_string(ranks);
    const Ended torchrun = run(ranks, train("torchrun" + count, {"--set", "train.steps=6"}));
    ASSERT_EQ(torchrun.code, 0) << torchrun.err;
    std::vector<std::string> command{TORCHRUN_RANKS, "--slurm", count, LOCKSTEP_BINARY};
    for (const std::string& argument : train("slurm" + count, {"--set", "train.steps=6"})) command.push_back(argument);
    const Ended slurm = Program(command, folder_.path()).wait();
    ASSERT_EQ(slurm.code, 0) << slurm.err;
    EXPECT_THAT(without_warnings(slurm.err), IsEmpty());
    EXPECT_EQ(summary("slurm" + count)["world_size"], ranks);
    EXPECT_EQ(summary("slurm" + count)["weights_digest"], summary("torchrun" + count)["weights_digest"]);
  }
}

// A fault is for the first start alone, also where Slurm makes the next one.
TEST_F(RanksWithoutMpi, OfAJobThatSlurmHasRequeuedAreNotInjuredAgain) {
  std::vector<std::string> command{TORCHRUN_RANKS, "--slurm", "2", LOCKSTEP_BINARY};
  for (const std::string& argument : train("run", {"--set", "train.steps=6", "--set", "fault={kill{step:3 rank:1}}"})) {
    command.push_back(argument);
  }
  EXPECT_NE(Program(command, folder_.path()).wait().code, 0);
  const Ended requeued = Program(command, folder_.path(), {{"SLURM_RESTART_COUNT", "1"}}).wait();
  EXPECT_EQ(requeued.code, 0) << requeued.err;
  EXPECT_THAT(requeued.out, HasSubstr("resuming from"));
}

TEST_F(RanksWithoutMpi, AnErrorOfAllIsSaidOnceAndEndsAll) {
  const Ended ended = run(3, train("run", {"--set", "amp.opt_level=O0", "--set", "amp.dtype=FP32", "--set",
                                           "fault={nan{step:3 rank:1 phase:LOSS}}"}));
  EXPECT_EQ(ended.code, 5) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
}

TEST_F(RanksWithoutMpi, AnErrorOfOneEndsAll) {
  // Rank 0 alone writes, and fails to; the others compute or wait for it.
  write_text(folder_ / "file", "");
  const Ended ended = run(3, train("file/run", {"--set", "train.steps=100000"}));
  EXPECT_EQ(ended.code, 4) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
}

TEST_F(RanksWithoutMpi, ALostRankIsNamedOnce) {
  const std::vector<std::string> faulty =
      train("run", {"--set", "train.steps=8", "--set", "fault={kill{step:5 rank:1}}"});
  // torchrun asks the other ranks to end at once; they say what they met first.
  const Ended lost = run(3, faulty);
  EXPECT_EQ(lost.code, 128 + SIGKILL);
  EXPECT_THAT(lost.err, ContainsRegex("error on rank 0 \\(peer lost, exit 7\\)"));
  EXPECT_THAT(lost.err, ContainsRegex("rank 1 \\(process [0-9]+\\) is gone"));
  EXPECT_EQ(count(lost.err, "lockstep: error"), 1u) << lost.err;

  // A restart of torchrun's injects no fault again, and goes on after the newest checkpoint.
  const Ended restarted = run(3, faulty, {{"TORCHRUN_RESTART_COUNT", "1"}});
  EXPECT_EQ(restarted.code, 0) << restarted.err;
  EXPECT_THAT(restarted.out, HasSubstr("resuming from"));
}

// They find each other by the run's id.
TEST_F(RanksWithoutMpi, WithDifferentJobsAreRefusedBeforeTheFirstStep) {
  const std::string command =
      std::string(LOCKSTEP_BINARY) + " train " + kConvnetJob + " --run-dir run --set train.steps=$STEPS";
  const std::vector<std::string> ranks{TORCHRUN_RANKS, "--set", "0",  "STEPS=6", "--set", "1",
                                       "STEPS=5",      "2",     "sh", "-c",      command};
  const Ended ended = Program(ranks, folder_.path()).wait();
  EXPECT_EQ(ended.code, 7) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("train.steps: 6 / 5 (rank 0 / rank 1)"));
}

// Nothing but the job tells their run from others.
TEST_F(RanksWithoutMpi, WithDifferentJobsAndVariablesAloneAreNamedOnBothBeforeTheTimeout) {
  const std::string command =
      std::string(LOCKSTEP_BINARY) + " train " + kConvnetJob + " --quiet --run-dir run --set train.steps=$STEPS";
  std::vector<std::string> ranks{TORCHRUN_RANKS, "--recover"};
  for (const char* rank : {"0", "1"}) ranks.insert(ranks.end(), {"--set", rank, "TORCHELASTIC_RUN_ID="});
  ranks.insert(ranks.end(), {"--set", "0", "STEPS=6", "--set", "1", "STEPS=5", "2", "sh", "-c", command});
  const Ended ended = Program(ranks, folder_.path()).wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::string hashes = "other settings than rank 0: [0-9a-f]{32}, rank 0 [0-9a-f]{32}";
  EXPECT_THAT(ended.err, ContainsRegex("refused rank 1 \\(process [0-9]+\\): .*" + hashes));
  EXPECT_THAT(ended.err, ContainsRegex("rank 0 \\(process [0-9]+\\), which waits for rank 1, .*" + hashes));
  EXPECT_EQ(count(ended.err, "was started with another job"), 2u) << ended.err;
  EXPECT_EQ(count(ended.err, "(peer lost, exit 7)"), 2u) << ended.err;
}

TEST_F(RanksWithoutMpi, AskedToStopSaveAndEnd) {
  const Program running(torchrun(2, train("run", {"--set", "train.steps=100000"})), folder_.path());
  for (int i = 0; i < 12000 && read_text(folder_ / "run/metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  running.signal(SIGTERM);
  const Ended ended = running.wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "run/checkpoints"));
}

TEST_F(RanksWithoutMpi, AreNotStartedTwice) {
  const Ended ended = run(2, train("run", {"--nproc", "3"}));
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("Leave --nproc away under mpirun, srun or torchrun."));
}

}  // namespace
}  // namespace lockstep::launcher
