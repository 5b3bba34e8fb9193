// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

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

}  // namespace
}  // namespace lockstep::launcher
