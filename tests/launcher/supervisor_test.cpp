// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor.h"

#include <gmock/gmock.h>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;
using train::RankPhase;
using train::StatusBoard;

/// Ranks that have started, and have ended by the time that the supervisor looks.
void run_and_end(const Folder& folder, const std::vector<int>& ranks, RankPhase phase) {
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  for (const int rank : ranks) {
    const pid_t pid = fork();
    if (pid == 0) {
      StatusBoard::from_environment().set(rank, phase, 0);
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

/// What the supervisor makes of these ranks' end where mpirun leaves this remark.
Error verdict_on(const std::vector<int>& watched, const std::string& remark, RankPhase phase = RankPhase::kInit) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  run_and_end(folder, watched, phase);
  const std::string dashes(74, '-');
  write_text(folder / "mpirun",
             "#!/bin/sh\ncat >&2 <<END\n" + dashes + "\n" + remark + "\n" + dashes + "\nEND\nexit 137\n");
  const MpirunCommand command{{"/bin/sh", (folder / "mpirun").string()}, {}};
  const SignalInbox inbox;
  const Outcome outcome = Supervisor(command, board, inbox, {.one_machine = true, .saves_on_request = true}).run();
  EXPECT_TRUE(outcome.error);
  return outcome.error.value_or(Error(ExitCode::kDone, "no error"));
}

constexpr const char* kRank1WasKilled =
    "mpirun noticed that process rank 1 with PID 0 on node here exited on signal 9 (Killed).";

TEST(Supervisor, NamesTheRankThatMpirunSawEndFirstWhereSeveralAreFoundDead) {
  const Error error = verdict_on({0, 1, 2}, kRank1WasKilled);
  EXPECT_EQ(error.code(), ExitCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("was killed (signal 9) during start-up"));
  EXPECT_THAT(error.what(), HasSubstr("rank 1 (pid"));
}

TEST(Supervisor, NamesTheRankThatMpirunSawEndBeforeItCouldBeWatched) {
  const Error error = verdict_on({0, 2}, kRank1WasKilled);
  EXPECT_EQ(error.code(), ExitCode::kPeerLost);
  EXPECT_THAT(error.what(), HasSubstr("rank 1 was killed (signal 9) before the first step"));
}

TEST(Supervisor, BlamesTheMachineForARankThatNeverStartedOnlyWhereMpirunDoes) {
  const Error blamed = verdict_on({0}, "A requested component was not found", RankPhase::kNone);
  EXPECT_EQ(blamed.code(), ExitCode::kEnvironment);
  EXPECT_THAT(blamed.what(), HasSubstr("A requested component was not found"));
  const Error unexplained = verdict_on(
      {0}, "Primary job  terminated normally, but 1 process returned\na non-zero exit code.", RankPhase::kNone);
  EXPECT_EQ(unexplained.code(), ExitCode::kPeerLost);
  EXPECT_THAT(unexplained.what(), HasSubstr("ended unexpectedly before the first step"));
}

}  // namespace
}  // namespace lockstep::launcher
