// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/progress_line.h"

#include <gmock/gmock.h>

#include <vector>

namespace lockstep::train {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

ProgressState busy() {
  return {.step = 252,
          .steps = 600,
          .elapsed = seconds(12),
          .left = seconds(16),
          .loss = 0.12345,
          .samples_per_s = 7512.3,
          .loss_scale = 65536.0,
          .skips = 2};
}

TEST(ProgressLine, TellsEverythingWhereThereIsRoom) {
  EXPECT_EQ(progress_line(busy(), 200),
            " 42 %  [###########.................]  252/600  0:12  eta 0:16  loss 0.1235  7512 samples/s  scale 65536  "
            "2 skipped");
}

TEST(ProgressLine, NeverExceedsItsRoom) {
  ProgressState long_one = busy();
  long_one.step = 123456789;
  long_one.steps = 1000000000;
  long_one.elapsed = std::chrono::hours(1000);
  long_one.loss = -1.2345e-37;
  long_one.samples_per_s = 1e9;
  for (const ProgressState& state : {busy(), long_one, ProgressState{}}) {
    for (int columns = -1; columns < 250; ++columns) {
      EXPECT_LE(static_cast<int>(progress_line(state, columns).size()), std::max(columns, 0)) << columns;
    }
  }
}

TEST(ProgressLine, LosesItsPartsInOrder) {
  const std::vector<std::string> order{"[#",        "0:12  eta", "scale 65536", "samples/s",
                                       "2 skipped", "eta 0:16",  "loss 0.1235", "252/600"};
  std::size_t gone = 0;
  for (int columns = 200; columns > 5; --columns) {
    const std::string line = progress_line(busy(), columns);
    while (gone < order.size() && line.find(order[gone]) == std::string::npos) ++gone;
    for (std::size_t i = gone; i < order.size(); ++i) {
      // What the elapsed time stands beside goes later.
      if (i != 1) {
        EXPECT_THAT(line, HasSubstr(order[i])) << columns;
      }
    }
    EXPECT_THAT(line, HasSubstr("42 %"));
  }
  EXPECT_EQ(gone, order.size());
}

TEST(ProgressLine, FitsANarrowWindow) {
  EXPECT_EQ(progress_line(busy(), 49), " 42 %  252/600  eta 0:16  loss 0.1235  2 skipped");
  EXPECT_EQ(progress_line(busy(), 19), " 42 %  252/600");
  EXPECT_EQ(progress_line(busy(), 4), "");
}

TEST(ProgressLine, LeavesOutWhatThereIsNot) {
  ProgressState state = busy();
  state.left.reset();
  state.loss_scale.reset();
  state.skips = 0;
  const std::string line = progress_line(state, 200);
  for (const char* part : {"eta", "scale", "skipped"}) EXPECT_THAT(line, Not(HasSubstr(part)));
}

TEST(ProgressLine, SaysHundredPercentAtTheEndAlone) {
  ProgressState state = busy();
  state.step = 599;
  EXPECT_THAT(progress_line(state, 20), HasSubstr("99 %"));
  state.step = 600;
  EXPECT_THAT(progress_line(state, 20), HasSubstr("100 %"));
}

TEST(DurationText, GrowsWithTheDuration) {
  EXPECT_EQ(duration_text(seconds(7)), "0:07");
  EXPECT_EQ(duration_text(seconds(754)), "12:34");
  EXPECT_EQ(duration_text(seconds(3723)), "1:02:03");
  EXPECT_EQ(duration_text(seconds(273900)), "3d 04:05");
  EXPECT_EQ(duration_text(seconds(-1)), "0:00");
}

TEST(Grouped, SetsCommas) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace lockstep::train
