// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/supervisor.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>

#include "runtime/base/descriptor.h"
#include "tests/launcher/program.h"
#include "tests/launcher/staying_rank.h"

namespace lockstep::launcher {
namespace {

using std::chrono::milliseconds;
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

/// The supervisor's error for these ranks' end where mpirun leaves this remark and ends by the command `end`.
Error verdict_on(const std::vector<int>& watched, const std::string& remark, RankPhase phase = RankPhase::kInit,
                 const std::string& end = "exit 137", const std::string& begin = "") {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  run_and_end(folder, watched, phase);
  const std::string dashes(74, '-');
  write_text(folder / "mpirun", "#!/bin/sh\n" + begin + "\ncat >&2 <<END\n" + dashes + "\n" + remark + "\n" + dashes +
                                    "\nEND\n" + end + "\n");
  const ChildCommand command{{"/bin/sh", (folder / "mpirun").string()}, {}};
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
  const Error blamed = verdict_on({0}, "A requested component was not found", RankPhase::kNotJoined);
  EXPECT_EQ(blamed.code(), ExitCode::kEnvironment);
  EXPECT_THAT(blamed.what(), HasSubstr("A requested component was not found"));
  EXPECT_THAT(blamed.what(), HasSubstr("rank 0 (pid"));
  EXPECT_THAT(blamed.what(), HasSubstr("ended unexpectedly before the first step"));
  // MPI may end the first rank without a word of ours, and mpirun kills the others while they join.
  const Error not_noted = verdict_on({0, 1}, "A requested component was not found", RankPhase::kJoin, "exit 1");
  EXPECT_EQ(not_noted.code(), ExitCode::kEnvironment);
  EXPECT_THAT(not_noted.what(), HasSubstr("A requested component was not found"));
  // An mpirun that somebody kills says nothing of the machine.
  const Error killed = verdict_on({0, 1}, "A requested component was not found", RankPhase::kJoin, "kill -KILL $$");
  EXPECT_EQ(killed.code(), ExitCode::kPeerLost);
  for (const char* remark : {"Primary job  terminated normally, but 1 process returned\na non-zero exit code.",
                             "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
                             "the job to be terminated."}) {
    const Error unexplained = verdict_on({0}, remark, RankPhase::kNone, "exit 1");
    EXPECT_EQ(unexplained.code(), ExitCode::kPeerLost) << remark;
    EXPECT_THAT(unexplained.what(), HasSubstr("ended unexpectedly before the first step"));
  }
}

// mpirun starts the ranks of this host beside those that another one cannot start, and ends them.
TEST(Supervisor, TellsInOneSentenceOfAHostThatCannotStartItsRanks) {
  const std::string remark =
      "mpirun was unable to launch the specified application as it could not access\nor execute an executable:\n\n"
      "Executable: /opt/lockstep\nNode: b\n\nwhile attempting to start process rank 1.";
  const Error error = verdict_on({0}, remark, RankPhase::kJoin, "exit 2");
  EXPECT_EQ(error.code(), ExitCode::kEnvironment);
  EXPECT_EQ(std::string(error.what()),
            "mpirun could not start the ranks: host b has no program /opt/lockstep that it may run");
  EXPECT_THAT(error.advice(), HasSubstr("--verbose"));
}

TEST(Supervisor, WaitsForMpirunToSayWhyRanksCouldNotJoin) {
  const Error late =
      verdict_on({0, 1}, "A requested component was not found", RankPhase::kNotJoined, "exit 1", "sleep 0.5");
  EXPECT_EQ(late.code(), ExitCode::kEnvironment);
  EXPECT_THAT(late.what(), HasSubstr("A requested component was not found"));
}

/// What the supervisor makes of an mpirun that ends as a rank that was killed did, and does not say which it was.
Error verdict_without_words(const std::vector<int>& seen) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, seen, RankPhase::kNotJoined);
  const SignalInbox inbox;
  const Outcome outcome = Supervisor({{"/bin/sh", "-c", "exit 137"}, {}}, board, inbox, {}).run();
  EXPECT_TRUE(outcome.error);
  return outcome.error.value_or(Error(ExitCode::kDone, "no error"));
}

TEST(Supervisor, NamesWhoMayHaveBeenKilledBeforeItCouldBeWatchedWhereMpirunDoesNot) {
  const Error nobody_seen = verdict_without_words({});
  EXPECT_EQ(nobody_seen.code(), ExitCode::kPeerLost);
  EXPECT_THAT(nobody_seen.what(), HasSubstr("one of ranks 0, 1 was killed (signal 9)"));
  const Error one_seen = verdict_without_words({0});
  EXPECT_EQ(one_seen.code(), ExitCode::kPeerLost);
  EXPECT_THAT(one_seen.what(), HasSubstr("rank 1 was killed (signal 9)"));
}

TEST(Supervisor, DoesNotBlameTheMachineForAnMpirunThatWasKilledBeforeItsRanksBegan) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const ChildCommand command{{"/bin/sh", "-c", "kill -KILL $$"}, {}};
  const SignalInbox inbox;
  const Outcome outcome = Supervisor(command, board, inbox, {.one_machine = true, .saves_on_request = true}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("mpirun, which holds the ranks, was killed (signal 9)"));
}

// Only part of the ranks may have met the cause; the others met its end.
TEST(Supervisor, TakesACauseForTheEndOfRanksRatherThanALostPeer) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  run_and_end(folder, {0, 1, 2}, RankPhase::kFailed);
  board.set_exit_code(0, static_cast<int>(ExitCode::kPeerLost));
  board.set_exit_code(1, static_cast<int>(ExitCode::kStorage));
  board.set_exit_code(2, static_cast<int>(ExitCode::kPeerLost));
  const SignalInbox inbox;
  const Outcome outcome = Supervisor({{"/bin/sh", "-c", "kill -KILL $$"}, {}}, board, inbox, {}).run();
  EXPECT_EQ(outcome.code, ExitCode::kStorage);
  EXPECT_FALSE(outcome.error);
}

/// What the supervisor makes of ranks on other machines and of this mpirun.
Outcome outcome_of_hosts(const std::string& mpirun) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const SignalInbox inbox;
  const ChildCommand command{{"/bin/sh", "-c", mpirun}, {}};
  const Supervised hosts{
      .one_machine = false, .saves_on_request = true, .output = {.quiet = true}, .timeout = milliseconds(300)};
  return Supervisor(command, board, inbox, hosts).run();
}

// Until mpirun listens to the request to save, it dies of it.
TEST(Supervisor, AskedToStopEarlyStopsAnMpirunOfSeveralMachines) {
  const SignalInbox inbox;  // holds the request back
  std::raise(SIGTERM);
  const Outcome outcome = outcome_of_hosts("exec sleep 600");
  EXPECT_EQ(outcome.code, ExitCode::kPreempted);
  EXPECT_TRUE(outcome.stop_requested);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("stopped, as asked"));
}

TEST(Supervisor, EndsAnMpirunOfSeveralMachinesThatIsStopped) {
  const Outcome outcome = outcome_of_hosts("kill -STOP $$");
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("mpirun, which holds the ranks, has been stopped"));
}

/// While it lives, stderr is a pipe that nobody reads.
class UnreadStderr {
 public:
  UnreadStderr() : before_(dup(STDERR_FILENO)) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    intake_.reset(ends[0]);
    dup2(Descriptor(ends[1]).get(), STDERR_FILENO);
  }
  ~UnreadStderr() { dup2(before_.get(), STDERR_FILENO); }

 private:
  Descriptor before_;
  Descriptor intake_;
};

TEST(Supervisor, ObeysWhereRanksPrintWithoutEndAndNobodyReadsIt) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const UnreadStderr unread;
  const SignalInbox inbox;
  std::raise(SIGTERM);
  const Outcome outcome = Supervisor({{"/bin/sh", "-c", "exec yes >&2"}, {}}, board, inbox, {}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPreempted);
}

TEST(Supervisor, EndsWithRanksWhoseWordsNobodyReads) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const UnreadStderr unread;
  const SignalInbox inbox;
  const std::string script = "head -c 300000 /dev/zero | tr '\\0' '\\n' >&2; exit 5";
  const Outcome outcome = Supervisor({{"/bin/sh", "-c", script}, {}}, board, inbox, {}).run();
  EXPECT_EQ(outcome.code, ExitCode::kNumerics);
}

/// A supervisor whose mpirun stays until it is ended, and what it makes of the ranks.
Outcome outcome_of(const StatusBoard& board) {
  const SignalInbox inbox;
  const ChildCommand command{{"/bin/sleep", "600"}, {}};
  return Supervisor(command, board, inbox, {.timeout = milliseconds(300)}).run();
}

TEST(Supervisor, EndsRanksThatAreStopped) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const StayingRank rank(folder, board, 0, RankPhase::kForward);
  const Outcome outcome = outcome_of(board);
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  EXPECT_TRUE(outcome.error);
}

TEST(Supervisor, EndsAnMpirunThatIsStopped) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const SignalInbox inbox;
  const ChildCommand command{{"/bin/sh", "-c", "kill -STOP $$"}, {}};
  const Outcome outcome = Supervisor(command, board, inbox, {.timeout = milliseconds(300)}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("mpirun, which holds the ranks, has been stopped"));
}

// Who has connected to mpirun and says nothing holds it for ever.
TEST(Supervisor, EndsAnMpirunThatGoesOnWithoutRanks) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, 0);
  const Outcome outcome = outcome_of(board);
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
}

TEST(Supervisor, NamesARankThatCouldNotJoinWhereMpirunGoesOnWithoutRanks) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kNotJoined);
  const Outcome outcome = outcome_of(board);
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("rank 0 (pid"));
  EXPECT_THAT(outcome.error->what(), HasSubstr("ended unexpectedly before the first step"));
}

TEST(Supervisor, TakesTheCodeOfARankThatFailedWhereMpirunGoesOnWithoutRanks) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0}, RankPhase::kBackward);
  run_and_end(folder, {1}, RankPhase::kFailed);
  board.set_exit_code(1, static_cast<int>(ExitCode::kStorage));
  const Outcome outcome = outcome_of(board);
  EXPECT_EQ(outcome.code, ExitCode::kStorage);
  EXPECT_FALSE(outcome.error);
}

TEST(Supervisor, TakesRanksThatAreDoneForDoneWhereTheyDoNotEnd) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const StayingRank rank(folder, board, 0, RankPhase::kDone);
  board.set_exit_code(0, 0);
  const Outcome outcome = outcome_of(board);
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
}

TEST(Supervisor, TakesRanksThatAreDoneForDoneWhereMpirunIsStopped) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, 0);
  const SignalInbox inbox;
  const ChildCommand command{{"/bin/sh", "-c", "kill -STOP $$"}, {}};
  const Outcome outcome = Supervisor(command, board, inbox, {.timeout = milliseconds(300)}).run();
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
}

// What mpirun still has to pass on would be lost, and a finished run would seem to be a lost one.
TEST(Supervisor, DoesNotDisturbTheEndOfRanksThatAreDone) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, 0);
  const SignalInbox inbox;
  const ChildCommand command{{"/bin/sh", "-c", "sleep 0.5; echo last words"}, {}};
  testing::internal::CaptureStdout();
  std::raise(SIGTERM);
  const Outcome outcome = Supervisor(command, board, inbox, {.saves_on_request = true}).run();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "last words\n");
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
  EXPECT_TRUE(outcome.stop_requested);
}

// A rank may hang where it leaves the others, and beats on; the first request must not be the one that is forgotten.
TEST(Supervisor, EndsARankThatIsDoneAndHangsOnceAskedTo) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const StayingRank rank(folder, board, 0, RankPhase::kDone);
  board.set_exit_code(0, 0);
  const SignalInbox inbox;
  std::raise(SIGTERM);
  const Outcome outcome = Supervisor({{"/bin/sleep", "600"}, {}}, board, inbox, {.saves_on_request = true}).run();
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
}

// To mpirun they have all ended with 0.
TEST(Supervisor, TakesTheCodeThatRanksAreDoneWithWhereMpirunEndsWithNone) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, static_cast<int>(ExitCode::kPreempted));
  const SignalInbox inbox;
  const Outcome outcome = Supervisor({{"/bin/true"}, {}}, board, inbox, {}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPreempted);
  EXPECT_FALSE(outcome.error);
}

TEST(Supervisor, TakesRanksThatAreDoneForDoneWhateverKillsMpirun) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, 0);
  const SignalInbox inbox;
  const Outcome outcome = Supervisor({{"/bin/sh", "-c", "kill -KILL $$"}, {}}, board, inbox, {}).run();
  EXPECT_EQ(outcome.code, ExitCode::kDone);
  EXPECT_FALSE(outcome.error);
}

}  // namespace
}  // namespace lockstep::launcher
