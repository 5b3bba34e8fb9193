// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_silence.h"

#include <gmock/gmock.h>

#include "tests/launcher/staying_rank.h"

namespace lockstep::launcher {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using train::RankPhase;
using train::StatusBoard;

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

TEST(RankSilence, NamesRanksThatWereSilencedAMomentApartTogether) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 3);
  const StayingRank late(folder, board, 0, RankPhase::kBackward);
  const StayingRank early(folder, board, 1, RankPhase::kBackward);
  const StayingRank running(folder, board, 2, RankPhase::kBackward);
  RankWatch ranks(board);
  RankSilence silence(milliseconds(5000));
  ranks.find_started();
  std::optional<Error> error;
  for (int look = 0; !error && look < 20; ++look) {
    if (look < 3) board.beat(0);
    board.beat(2);
    error = silence.look(ranks, milliseconds(500));
  }
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "ranks 0, 1 have been without a sign for 4 s, in step 7, backward");
}

TEST(RankSilence, NamesARankThatCouldNotJoinAndDoesNotEnd) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const StayingRank joined(folder, board, 0, RankPhase::kJoined);
  const StayingRank rank(folder, board, 1, RankPhase::kNotJoined);
  EXPECT_EQ(found(board, {0, 1}, 61, milliseconds(5000)), "rank 1 has not joined the others for 30 s");
}

// Its heartbeat ends before it does.
TEST(RankSilence, DoesNotCountARankThatIsDone) {
  const Folder folder;
  const StatusBoard board = StatusBoard::create(folder / "status", 2);
  const StayingRank rank(folder, board, 0, RankPhase::kSave);
  const StayingRank done(folder, board, 1, RankPhase::kDone);
  board.set_exit_code(1, 0);
  EXPECT_EQ(found(board, {0}, 100, milliseconds(5000)), "nothing");
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

}  // namespace
}  // namespace lockstep::launcher
