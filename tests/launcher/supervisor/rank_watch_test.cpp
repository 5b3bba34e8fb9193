// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/base/process.h"
#include "tests/launcher/staying_rank.h"

namespace lockstep::launcher {
namespace {

using train::RankPhase;
using train::StatusBoard;

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

TEST(RankWatch, KnowsWhetherAnyHasJoined) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 1);
  const RankWatch watch(board);
  // One that has failed may have joined before or not.
  for (const RankPhase phase : {RankPhase::kNone, RankPhase::kJoin, RankPhase::kNotJoined, RankPhase::kFailed}) {
    board.set(0, phase, 0);
    EXPECT_FALSE(watch.any_joined());
  }
  for (const RankPhase phase : {RankPhase::kJoined, RankPhase::kBackward, RankPhase::kDone}) {
    board.set(0, phase, 0);
    EXPECT_TRUE(watch.any_joined());
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
