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
void run_and_end(const Folder& folder, int ranks) {
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      StatusBoard::from_environment().set(rank, RankPhase::kInit, 0);
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

TEST(Supervisor, NamesTheRankThatMpirunSawEndFirstWhereSeveralAreFoundDead) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, 2);
  const std::string dashes(74, '-');
  write_text(folder / "mpirun", "#!/bin/sh\ncat >&2 <<END\n" + dashes +
                                    "\nmpirun noticed that process rank 1 with PID 0 on node here exited on signal 9 "
                                    "(Killed).\n" +
                                    dashes + "\nEND\nexit 137\n");
  const MpirunCommand command{{"/bin/sh", (folder / "mpirun").string()}, {}};
  const SignalInbox inbox;
  const Outcome outcome = Supervisor(command, board, inbox, {.one_machine = true, .saves_on_request = true}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("rank 1 (pid"));
  EXPECT_THAT(outcome.error->what(), HasSubstr("was killed (signal 9) during start-up"));
}

}  // namespace
}  // namespace lockstep::launcher
