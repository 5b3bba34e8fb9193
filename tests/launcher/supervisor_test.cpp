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
void run_and_end(const Folder& folder, const std::vector<int>& ranks) {
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  for (const int rank : ranks) {
    const pid_t pid = fork();
    if (pid == 0) {
      StatusBoard::from_environment().set(rank, RankPhase::kInit, 0);
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

/// What the supervisor says where mpirun noticed that rank 1 was killed.
std::string verdict_on(const std::vector<int>& watched) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  run_and_end(folder, watched);
  const std::string dashes(74, '-');
  write_text(folder / "mpirun", "#!/bin/sh\ncat >&2 <<END\n" + dashes +
                                    "\nmpirun noticed that process rank 1 with PID 0 on node here exited on signal 9 "
                                    "(Killed).\n" +
                                    dashes + "\nEND\nexit 137\n");
  const MpirunCommand command{{"/bin/sh", (folder / "mpirun").string()}, {}};
  const SignalInbox inbox;
  const Outcome outcome = Supervisor(command, board, inbox, {.one_machine = true, .saves_on_request = true}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  return outcome.error ? outcome.error->what() : "";
}

TEST(Supervisor, NamesTheRankThatMpirunSawEndFirstWhereSeveralAreFoundDead) {
  EXPECT_THAT(verdict_on({0, 1, 2}), HasSubstr("was killed (signal 9) during start-up"));
  EXPECT_THAT(verdict_on({0, 1, 2}), HasSubstr("rank 1 (pid"));
}

TEST(Supervisor, NamesTheRankThatMpirunSawEndBeforeItCouldBeWatched) {
  EXPECT_THAT(verdict_on({0, 2}), HasSubstr("rank 1 was killed (signal 9) before the first step"));
}

}  // namespace
}  // namespace lockstep::launcher
