// SPDX-License-Identifier: Apache-2.0
// The command with ranks.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "comm/group/versions.h"
#include "tests/launcher/program.h"
#include "tests/support/processes.h"

namespace lockstep::launcher {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
    std::istringstream numbers(read_text(thread.path() / "children"));
    for (pid_t child = 0; numbers >> child;) children.push_back(child);
  }
  return children;
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (comm::mpi_version().empty()) GTEST_SKIP() << "this build has no MPI to start ranks with";
  }
  static std::vector<std::string> train(std::vector<std::string> more) {
    std::vector<std::string> arguments{"train", kConvnetJob, "--nproc", "2", "--run-dir", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  Ended run(std::vector<std::string> arguments, const Program::Variables& variables = {}) const {
    return lockstep_command(std::move(arguments), folder_, variables);
  }
  /// Two ranks of mpirun's own, one of each command.
  Ended mpirun(const std::vector<std::string>& first, const std::vector<std::string>& second) const {
    std::vector<std::string> arguments{
        MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BY_RANK, LOCKSTEP_BINARY};
    arguments.insert(arguments.end(), first.begin(), first.end());
    arguments.insert(arguments.end(), {"--next", LOCKSTEP_BINARY});
    arguments.insert(arguments.end(), second.begin(), second.end());
    return Program(arguments, folder_.path()).wait();
  }
  std::string metrics() const { return read_text(folder_ / "run/metrics.jsonl"); }
  json summary() const { return json::parse(read_text(folder_ / "run/summary.json")); }
  /// Puts an mpirun first in PATH that is killed as it starts.
  Program::Variables mpirun_that_is_killed() const {
    write_text(folder_ / "mpirun", "#!/bin/sh\nkill -KILL $$\n");
    std::filesystem::permissions(folder_ / "mpirun", std::filesystem::perms::owner_all);
    const char* path = std::getenv("PATH");
    return {{"PATH", folder_.path().string() + ":" + (path == nullptr ? "" : path)}};
  }
  static bool soon(const std::function<bool()>& condition) {
    for (int i = 0; i < 12000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  /// 0 where the command's mpirun has not started it.
  static pid_t process_of_rank(pid_t command, int rank) {
    for (const pid_t mpirun : children_of(command)) {
      for (const pid_t process : children_of(mpirun)) {
        if (support::has_variable(process, "OMPI_COMM_WORLD_RANK=" + std::to_string(rank))) return process;
      }
    }
    return 0;
  }

  Folder folder_;
};

TEST_F(Ranks, TrainAndEvaluateFromOneCommand) {
  const Ended ended = run(train({"--set", "train.steps=6"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(without_warnings(ended.err), IsEmpty());
  EXPECT_EQ(summary()["world_size"], 2);
  for (const char* ranks : {"1", "2"}) {
    const Ended eval = run({"eval", kConvnetJob, "--checkpoint", "run", "--nproc", ranks, "--json"});
    ASSERT_EQ(eval.code, 0) << eval.err;
    const json result = json::parse(eval.out);
    EXPECT_EQ(result["samples"], 297);
    EXPECT_EQ(result["accuracy"], summary()["eval"]["accuracy"]);
  }
  EXPECT_EQ(run({"eval", kConvnetJob, "--checkpoint", "missing", "--nproc", "2"}).code, 4);
}

TEST_F(Ranks, AnErrorOfAllIsSaidOnce) {
  const Ended ended = run(train(
      {"--set", "amp.opt_level=O0", "--set", "amp.dtype=FP32", "--set", "fault={nan{step:3 rank:1 phase:LOSS}}"}));
  EXPECT_EQ(ended.code, 5) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("MPI_ABORT")));
}

TEST_F(Ranks, ALostRankIsNamedOnceAndRestarted) {
  const std::vector<std::string> settings{
      "--set", "train.steps=8", "--set", "checkpoint.every_steps=2", "--set", "fault={kill{step:5 rank:1}}"};
  const Ended lost = run(train(settings));
  EXPECT_EQ(lost.code, 7);
  EXPECT_THAT(lost.err, ContainsRegex("rank 1 \\(pid [0-9]+\\) was killed \\(signal 9\\) in step 5, backward"));
  EXPECT_EQ(count(lost.err, "lockstep: error"), 1u) << lost.err;
  EXPECT_THAT(lost.err, Not(HasSubstr("mpirun")));

  std::vector<std::string> again = train(settings);
  again.insert(again.end(), {"--resume", "never", "--max-restarts", "1"});
  const Ended restarted = run(again);
  EXPECT_EQ(restarted.code, 0) << restarted.err;
  EXPECT_THAT(restarted.err, HasSubstr("restart 1 of 1"));
  EXPECT_THAT(restarted.out, HasSubstr("resuming from"));
}

TEST_F(Ranks, OfWhichOneIsKilledBeforeItHasJoinedNameIt) {
  std::vector<std::string> command = train({"--set", "train.steps=100000"});
  command.insert(command.begin(), LOCKSTEP_BINARY);
  const Program running(command, folder_.path());
  pid_t rank = 0;
  ASSERT_TRUE(soon([&] { return (rank = process_of_rank(running.pid(), 1)) != 0; }));
  support::signal_descendant(rank, SIGKILL);
  const Ended ended = running.wait();
  EXPECT_EQ(ended.code, 7) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
  // Where Open MPI loses its words, nobody knows which one it was that it did not end itself.
  EXPECT_THAT(ended.err, AnyOf(ContainsRegex("ranks? (0, )?1 (\\(pid [0-9]+\\) )?was killed \\(signal 9\\)"),
                               HasSubstr("Open MPI has not said why")));
}

TEST_F(Ranks, LostAtTheSamePlaceAreStartedAgainLaterEachTime) {
  const auto begin = std::chrono::steady_clock::now();
  const Ended ended = run(train({"--max-restarts", "2"}), mpirun_that_is_killed());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1 + 2));
  EXPECT_EQ(ended.code, 7) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 3u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("again in 1 s: restart 1 of 2"));
  EXPECT_THAT(ended.err, HasSubstr("again in 2 s: restart 2 of 2"));
}

TEST_F(Ranks, AskedToStopBetweenTwoStartsAreNotStartedAgain) {
  std::vector<std::string> command = train({"--max-restarts", "20"});
  command.insert(command.begin(), LOCKSTEP_BINARY);
  const Program running(command, folder_.path(), mpirun_that_is_killed());
  ASSERT_TRUE(soon([&] { return count(read_text(folder_ / "stderr"), "again in 4 s") > 0; }));
  running.signal(SIGTERM);
  const Ended ended = running.wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("stopped, as asked, before the ranks were started again"));
  EXPECT_THAT(ended.err, Not(HasSubstr("again in 8 s")));
}

TEST_F(Ranks, AHangIsNamedWithItsStep) {
  const Ended hung =
      run(train({"--set", "train.steps=8", "--set", "comm.timeout_s=5", "--set", "fault={stop{step:5 rank:1}}"}));
  EXPECT_EQ(hung.code, 7);
  EXPECT_THAT(hung.err, ContainsRegex("error on rank 0, in step 5, [a-z]+ \\(peer lost, exit 7\\)"));
  EXPECT_THAT(hung.err, ContainsRegex("rank 1 \\(process [0-9]+\\) did not arrive within 5.0 s"));
}

// No rank is left that could say so.
TEST_F(Ranks, ThatAreAllStoppedAreNamed) {
  const Ended stopped = run(train({"--set", "train.steps=8", "--set", "comm.timeout_s=2", "--set",
                                   "fault=[{stop{step:5 rank:0}}, {stop{step:5 rank:1}}]"}));
  EXPECT_EQ(stopped.code, 7);
  EXPECT_THAT(stopped.err, ContainsRegex("ranks 0, 1 have been stopped for [0-9]+ s, in step 5, backward"));
}

TEST_F(Ranks, ThatCannotStartMpiSayWhyAndAreNotRestarted) {
  const Ended ended = run(train({"--max-restarts", "2"}), {{"OMPI_MCA_btl", "none-such"}});
  // mpirun may end before the ranks have.
  EXPECT_THAT(ended.err, AnyOf(HasSubstr("before the first step"), HasSubstr("mpirun could not start the ranks")));
  // Without its words nobody can tell this from a rank that was killed, and another try is right; it may find them.
  if (ended.err.find("Open MPI has not said") != std::string::npos) {
    EXPECT_THAT(ended.code, AnyOf(3, 7)) << ended.err;
    return;
  }
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_THAT(ended.err, AnyOf(HasSubstr("none-such"), HasSubstr("MPI_INIT")));
  EXPECT_THAT(ended.err, Not(HasSubstr(": restart ")));
}

TEST_F(Ranks, AskedToStopSaveAndEnd) {
  const std::vector<std::string> settings = train({"--set", "train.steps=100000"});
  std::vector<std::string> command = settings;
  command.insert(command.begin(), LOCKSTEP_BINARY);
  const Program running(command, folder_.path());
  ASSERT_TRUE(soon([&] { return !metrics().empty(); }));
  running.signal(SIGTERM);
  const Ended ended = running.wait();
  EXPECT_EQ(ended.code, 75) << ended.err;
  EXPECT_THAT(without_warnings(ended.err), IsEmpty());
  EXPECT_FALSE(std::filesystem::is_empty(folder_ / "run/checkpoints"));
}

TEST_F(Ranks, AskedToStopBeforeTheFirstStepEndAtOnce) {
  // A background shell leaves SIGINT ignored, and then it is lost before the program has asked for it.
  std::signal(SIGINT, SIG_DFL);
  std::vector<std::string> command = train({"--set", "train.steps=100000"});
  command.insert(command.begin(), LOCKSTEP_BINARY);
  for (const int milliseconds : {0, 20, 60}) {
    const Program running(command, folder_.path());
    // Until then the program has asked for no signal, and it just ends.
    ASSERT_TRUE(soon([&] { return running.catches(SIGINT); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    running.signal(SIGINT);
    EXPECT_EQ(running.wait().code, 75);
  }
}

TEST_F(Ranks, AReaderThatGoesAwayDoesNotEndTheRun) {
  const std::string command = std::string(LOCKSTEP_BINARY) + " train " + kConvnetJob +
                              " --nproc 2 --run-dir run --set train.steps=30 --set train.log_every=1 | head -n 1";
  Program({"sh", "-c", command}, folder_.path()).wait();
  ASSERT_TRUE(soon([&] { return std::filesystem::exists(folder_ / "run/summary.json"); }));
  EXPECT_EQ(summary()["steps"], 30);
}

TEST_F(Ranks, WithDifferentJobsAreRefusedBeforeTheFirstStep) {
  const Ended ended = mpirun({"train", kConvnetJob, "--run-dir", "run", "--set", "train.steps=6"},
                             {"train", kConvnetJob, "--run-dir", "run", "--set", "train.steps=5"});
  EXPECT_EQ(ended.code, 7) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("train.steps: 6 / 5 (rank 0 / rank 1)"));
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
  EXPECT_THAT(metrics(), IsEmpty());
}

TEST_F(Ranks, OfAForeignMpirunSayAWrongCommandLineOnce) {
  const std::vector<std::string> wrong{"train", kConvnetJob, "--nproc", "3"};
  const Ended ended = mpirun(wrong, wrong);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
}

// What validate refuses is one block, however the ranks are started, and nothing is written before.
TEST_F(Ranks, ThatCannotTrainTheJobSaySoOnce) {
  write_text(folder_ / "images", "\x01\x02\x03\x04");
  const std::vector<std::pair<std::string, int>> settings{{"data.train.idx.images=" + (folder_ / "images").string(), 4},
                                                          {"model.convnet.block[0].max_pool=40", 2},
                                                          {"fault={ kill { step: 1 rank: 7 } }", 2}};
  for (const auto& [setting, code] : settings) {
    const std::vector<std::string> wrong{"train", kConvnetJob, "--run-dir", "run", "--set", setting};
    for (const Ended& ended : {run(train({"--set", setting})), mpirun(wrong, wrong)}) {
      EXPECT_EQ(ended.code, code) << ended.err;
      EXPECT_EQ(count(ended.err, "lockstep: error"), 1u) << ended.err;
      EXPECT_THAT(ended.err, HasSubstr("--set " + setting + ": "));
      EXPECT_FALSE(std::filesystem::exists(folder_ / "run/job.pbtxt"));
    }
  }
}

TEST_F(Ranks, AreWarnedOnce) {
  const Ended ended = run(train({"--set", "train.steps=2", "--set", "schedule={ cosine { warmup_steps: 3 } }"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count(ended.err, "the warm-up takes 3 steps, the run only 2"), 1u) << ended.err;
}

TEST_F(Ranks, GoWithTheirSupervisor) {
  std::vector<std::string> command = train({"--set", "train.steps=100000"});
  command.insert(command.begin(), LOCKSTEP_BINARY);
  const Program running(command, folder_.path());
  ASSERT_TRUE(soon([&] { return !metrics().empty(); }));
  running.signal(SIGKILL);
  EXPECT_EQ(running.wait().code, 128 + SIGKILL);
  // The watchdog around this test fails it for ranks that stay.
}

TEST_F(Ranks, AreNotLeftWhenMpirunIsKilled) {
  std::vector<std::string> command = train({"--set", "train.steps=100000"});
  command.insert(command.begin(), LOCKSTEP_BINARY);
  const Program running(command, folder_.path());
  ASSERT_TRUE(soon([&] { return !metrics().empty(); }));
  support::signal_descendant(children_of(running.pid()).at(0), SIGKILL);
  const Ended ended = running.wait();
  EXPECT_EQ(ended.code, 7) << ended.err;
}

}  // namespace
}  // namespace lockstep::launcher
