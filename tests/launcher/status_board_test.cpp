// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/status_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/supervisor/rank_watch.h"
#include "runtime/base/error.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using train::RankPhase;
using train::StatusBoard;

TEST(StatusBoard, ShowsWhatARankOfAnotherProcessWrote) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  EXPECT_EQ(board.ranks(), 3);
  EXPECT_EQ(board.get(1).pid, 0);
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  const pid_t rank = fork();
  if (rank == 0) {
    StatusBoard::from_environment().set(1, RankPhase::kBackward, 57);
    _exit(0);
  }
  waitpid(rank, nullptr, 0);
  EXPECT_EQ(board.get(1).pid, rank);
  EXPECT_EQ(train::str(board.get(1)), "in step 57, backward");
  EXPECT_EQ(board.get(0).pid, 0);
}

TEST(StatusBoard, WithoutAFileGoesNowhere) {
  unsetenv("LOCKSTEP_STATUS_BOARD");
  const StatusBoard none = StatusBoard::from_environment();
  none.set(0, RankPhase::kForward, 1);
  EXPECT_EQ(none.ranks(), 0);
  EXPECT_EQ(none.get(0).step, 0u);
  setenv("LOCKSTEP_STATUS_BOARD", "/nonexistent/status", 1);
  EXPECT_EQ(StatusBoard::from_environment().ranks(), 0);
}

TEST(StatusBoard, IgnoresRanksThatItHasNoLineFor) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  board.set(2, RankPhase::kForward, 1);
  board.set(-1, RankPhase::kForward, 1);
  EXPECT_EQ(board.get(2).pid, 0);
}

TEST(StatusBoard, ThatCannotBeMadeIsAStorageError) {
  EXPECT_THROW(StatusBoard::create("/nonexistent/status", 2), StorageError);
}

TEST(StatusBoard, HandsTheWidthOfTheTerminalToTheRanks) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  const StatusBoard rank = StatusBoard::from_environment();
  unsetenv("LOCKSTEP_STATUS_BOARD");
  EXPECT_EQ(rank.ranks(), 2);
  EXPECT_EQ(rank.columns(), 0);
  board.set_columns(50);
  EXPECT_EQ(rank.columns(), 50);
  board.set(1, RankPhase::kForward, 7);
  EXPECT_EQ(rank.columns(), 50);
}

TEST(StatusBoard, GoesOnInAProcessThatHasItWhereItsFileIsRemoved) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  const pid_t rank = fork();
  if (rank == 0) {
    const StatusBoard first = StatusBoard::from_environment();
    std::filesystem::remove(folder / "status");
    StatusBoard::from_environment().set(1, RankPhase::kBackward, 57);
    _exit(0);
  }
  waitpid(rank, nullptr, 0);
  EXPECT_EQ(board.get(1).pid, rank);
  EXPECT_EQ(StatusBoard::from_environment().ranks(), 0);
}

TEST(StatusBoard, OfAForkIsItsOwn) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  setenv("LOCKSTEP_STATUS_BOARD", (folder / "status").c_str(), 1);
  const StatusBoard mine = StatusBoard::from_environment();
  const pid_t rank = fork();
  if (rank == 0) {
    StatusBoard::from_environment().set(1, RankPhase::kBackward, 57);
    _exit(0);
  }
  waitpid(rank, nullptr, 0);
  EXPECT_EQ(board.get(1).pid, rank);
}

TEST(StatusBoard, SaysEveryPhase) {
  EXPECT_EQ(train::str({1, 0, RankPhase::kNone}), "before the first step");
  EXPECT_EQ(train::str({1, 0, RankPhase::kInit}), "during start-up");
  EXPECT_EQ(train::str({1, 3, RankPhase::kSave}), "in step 3, checkpoint");
  EXPECT_EQ(train::str({1, 3, RankPhase::kFailed}), "in step 3, failed");
}

/// A rank that notes its phase and then waits to be killed.
pid_t start_rank(const StatusBoard& parents, const std::string& file, int rank, RankPhase phase) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("LOCKSTEP_STATUS_BOARD", file.c_str(), 1);
    StatusBoard::from_environment().set(rank, phase, 5);
    pause();
    _exit(0);
  }
  while (parents.get(rank).pid == 0) usleep(1000);
  return pid;
}

TEST(RankWatch, KnowsWhenAllHaveJoined) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const RankWatch watch(board);
  EXPECT_FALSE(watch.all_joined());
  board.set(0, RankPhase::kForward, 1);
  for (const RankPhase phase : {RankPhase::kNone, RankPhase::kJoin, RankPhase::kNotJoined}) {
    board.set(1, phase, 0);
    EXPECT_FALSE(watch.all_joined());
  }
  for (const RankPhase phase : {RankPhase::kJoined, RankPhase::kInit, RankPhase::kDone}) {
    board.set(1, phase, 0);
    EXPECT_TRUE(watch.all_joined());
  }
}

TEST(RankWatch, NoticesTheEndOfRanksThatAreNotItsChildren) {
  const Folder folder;
  const std::string file = folder / "status";
  const StatusBoard board = StatusBoard::create(file, 2);
  RankWatch watch(board);
  watch.find_started();
  EXPECT_FALSE(watch.any_started());
  const pid_t first = start_rank(board, file, 0, RankPhase::kNone);
  watch.find_started();
  EXPECT_TRUE(watch.any_started());
  EXPECT_FALSE(watch.all_started());
  EXPECT_FALSE(watch.any_at_work());
  const pid_t second = start_rank(board, file, 1, RankPhase::kForward);
  watch.find_started();
  EXPECT_TRUE(watch.all_started());
  EXPECT_TRUE(watch.any_at_work());
  EXPECT_TRUE(watch.take_ended().empty());
  signal_child(second, SIGKILL);
  waitpid(second, nullptr, 0);
  EXPECT_EQ(watch.take_ended(), std::vector<int>{1});
  EXPECT_TRUE(watch.take_ended().empty());
  watch.kill_all();
  int status = 0;
  waitpid(first, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(RankWatch, CountsARankThatEndedBeforeItWasSeen) {
  const Folder folder;
  const std::string file = folder / "status";
  const StatusBoard board = StatusBoard::create(file, 1);
  const pid_t rank = start_rank(board, file, 0, RankPhase::kInit);
  signal_child(rank, SIGKILL);
  waitpid(rank, nullptr, 0);
  RankWatch watch(board);
  watch.find_started();
  EXPECT_EQ(watch.take_ended(), std::vector<int>{0});
}

}  // namespace
}  // namespace lockstep::launcher
