// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "launcher/rank_silence.h"
#include "tests/launcher/program.h"

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
  const Error blamed = verdict_on({0}, "A requested component was not found", RankPhase::kNotJoined);
  EXPECT_EQ(blamed.code(), ExitCode::kEnvironment);
  EXPECT_THAT(blamed.what(), HasSubstr("A requested component was not found"));
  const Error unexplained = verdict_on(
      {0}, "Primary job  terminated normally, but 1 process returned\na non-zero exit code.", RankPhase::kNone);
  EXPECT_EQ(unexplained.code(), ExitCode::kPeerLost);
  EXPECT_THAT(unexplained.what(), HasSubstr("ended unexpectedly before the first step"));
}

TEST(Supervisor, DoesNotBlameTheMachineForAnMpirunThatWasKilledBeforeItsRanksBegan) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const MpirunCommand command{{"/bin/sh", "-c", "kill -KILL $$"}, {}};
  const SignalInbox inbox;
  const Outcome outcome = Supervisor(command, board, inbox, {.one_machine = true, .saves_on_request = true}).run();
  EXPECT_EQ(outcome.code, ExitCode::kPeerLost);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->what(), HasSubstr("mpirun, which holds the ranks, was killed (signal 9)"));
}

/// A rank that comes to `phase` and stays there, until it is killed. It has no heartbeat of its own.
class StayingRank {
 public:
  StayingRank(const Folder& folder, const StatusBoard& board, int rank, RankPhase phase) {
    setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
    pid_ = fork();
    if (pid_ == 0) {
      StatusBoard::from_environment().set(rank, phase, 7);
      for (;;) pause();
    }
    while (board.get(rank).pid == 0) usleep(1000);
  }
  ~StayingRank() {
    signal_child(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

/// What is found within `looks` looks of half a second at ranks of which those in `beating` run.
std::string found(const StatusBoard& board, const std::vector<int>& beating, int looks, milliseconds limit) {
  RankWatch ranks(board);
  RankSilence silence(limit);
  ranks.find_started();
  for (int look = 0; look < looks; ++look) {
    for (const int rank : beating) board.beat(rank);
    if (const auto error = silence.look(ranks, milliseconds(500))) return error->what();
  }
  return "nothing";
}

TEST(RankSilence, NamesRanksThatNeverJoinTheOthers) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  const StayingRank joined(folder, board, 0, RankPhase::kJoined);
  const StayingRank joining(folder, board, 2, RankPhase::kJoin);
  const StayingRank also_joining(folder, board, 1, RankPhase::kJoin);
  EXPECT_EQ(found(board, {0, 1, 2}, 60, milliseconds(5000)), "nothing");
  EXPECT_EQ(found(board, {0, 1, 2}, 61, milliseconds(5000)), "ranks 1, 2 have not joined the others for 30 s");
  EXPECT_EQ(found(board, {0, 1, 2}, 81, milliseconds(40000)), "ranks 1, 2 have not joined the others for 40 s");
}

TEST(RankSilence, NamesRanksThatNeverStart) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const StayingRank rank(folder, board, 0, RankPhase::kJoin);
  EXPECT_EQ(found(board, {0}, 61, milliseconds(5000)), "rank 1 has not started for 30 s");
}

TEST(RankSilence, NamesRanksThatNoLongerRun) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const StayingRank rank(folder, board, 0, RankPhase::kBackward);
  const StayingRank silent(folder, board, 1, RankPhase::kBackward);
  EXPECT_EQ(found(board, {0, 1}, 100, milliseconds(5000)), "nothing");
  EXPECT_EQ(found(board, {0}, 11, milliseconds(5000)), "rank 1 has been without a sign for 5 s, in step 7, backward");
  EXPECT_THAT(found(board, {}, 11, milliseconds(5000)), HasSubstr("ranks 0, 1 have been without a sign"));
}

// A machine that sleeps, or a supervisor that is stopped, tells nothing of the ranks.
TEST(RankSilence, DoesNotCountTimeInWhichNobodyRan) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const StayingRank rank(folder, board, 0, RankPhase::kBackward);
  RankWatch ranks(board);
  RankSilence silence(milliseconds(5000));
  ranks.find_started();
  silence.look(ranks, milliseconds(500));
  EXPECT_FALSE(silence.look(ranks, std::chrono::hours(8)));
}

/// A supervisor whose mpirun stays until it is ended, and what it makes of the ranks.
Outcome outcome_of(const StatusBoard& board) {
  const SignalInbox inbox;
  const MpirunCommand command{{"/bin/sleep", "600"}, {}};
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
  const MpirunCommand command{{"/bin/sh", "-c", "kill -STOP $$"}, {}};
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

// What mpirun still has to pass on would be lost, and a finished run would seem to be a lost one.
TEST(Supervisor, DoesNotDisturbTheEndOfRanksThatAreDone) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  run_and_end(folder, {0, 1}, RankPhase::kDone);
  for (const int rank : {0, 1}) board.set_exit_code(rank, 0);
  const SignalInbox inbox;
  const MpirunCommand command{{"/bin/sh", "-c", "sleep 0.5; echo last words"}, {}};
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

/// Of the start of a rank's process, in its line of the board's file.
constexpr int kOffsetOfStarted = 24;

// The board's number may be another process's by the time that the supervisor looks.
TEST(RankWatch, LeavesALaterProcessOfTheSameNumberAlone) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const StayingRank rank(folder, board, 0, RankPhase::kForward);
  const std::filesystem::path file = folder / "status";
  std::fstream line(file, std::ios::in | std::ios::out | std::ios::binary);
  const std::uint64_t earlier = board.get(0).started - 1;
  line.seekp(kOffsetOfStarted);
  line.write(reinterpret_cast<const char*>(&earlier), sizeof earlier);
  line.close();
  ASSERT_EQ(board.get(0).started, earlier);
  RankWatch watch(board);
  watch.find_started();
  EXPECT_EQ(watch.take_ended(), std::vector<int>{0});
  EXPECT_TRUE(watch.running().empty());
}

}  // namespace
}  // namespace lockstep::launcher
