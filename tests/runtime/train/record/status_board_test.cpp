// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/status_board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/folder.h"

namespace lockstep::train {
namespace {

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
  EXPECT_EQ(str(board.get(1)), "in step 57, backward");
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
  EXPECT_EQ(str({1, 0, RankPhase::kNone}), "before the first step");
  EXPECT_EQ(str({1, 0, RankPhase::kInit}), "during start-up");
  EXPECT_EQ(str({1, 3, RankPhase::kSave}), "in step 3, checkpoint");
  EXPECT_EQ(str({1, 3, RankPhase::kFailed}), "in step 3, failed");
}

}  // namespace
}  // namespace lockstep::train
