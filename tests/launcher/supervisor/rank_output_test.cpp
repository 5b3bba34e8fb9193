// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_output.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::launcher {
namespace {

/// A file in memory, and what was written to it.
class Written {
 public:
  ~Written() {
    std::fclose(file_);
    std::free(text_);
  }
  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_ = open_memstream(&text_, &size_);
};

TEST(RankOutput, WithoutALiveLineIsPassedOnByWholeLines) {
  Written written;
  RankOutput output(written.file(), false);
  output.pass("{\"step\":1}\n{\"step\":2,\"");
  EXPECT_EQ(written.text(), "{\"step\":1}\n");
  output.end_live_line();  // somebody else speaks
  output.pass("time\":3}");
  output.pass("\n");
  EXPECT_EQ(written.text(), "{\"step\":1}\n{\"step\":2,\"time\":3}\n");
}

TEST(RankOutput, IsNotKeptForTheEndOfALineThatDoesNotCome) {
  Written written;
  RankOutput output(written.file(), false);
  const std::string begin((std::size_t{64} << 10) - 1, 'x');
  output.pass("first\n" + begin);
  EXPECT_EQ(written.text(), "first\n");
  output.pass("y");
  EXPECT_EQ(written.text(), "first\n" + begin + "y");
  output.pass("end\n");
  output.finish();
  EXPECT_EQ(written.text(), "first\n" + begin + "yend\n");
}

TEST(RankOutput, OfARankThatEndsWithinALineIsEnded) {
  Written written;
  RankOutput output(written.file(), false);
  output.pass("{\"step\":1}\n{\"st");
  output.finish();
  output.finish();
  EXPECT_EQ(written.text(), "{\"step\":1}\n{\"st\n");
}

TEST(RankOutput, ThatIsNoTextBehindTheLastLineIsEscaped) {
  Written written;
  RankOutput output(written.file(), false);
  output.pass("{\"step\":1}\n\xc0U");
  output.finish();
  EXPECT_EQ(written.text(), "{\"step\":1}\n\\xc0U\n");
}

TEST(RankOutput, ThatIsNoTextIsEscapedInWholeLinesToo) {
  Written written;
  RankOutput output(written.file(), false);
  output.pass("{\"step\":1}\n\xb0U\n\x1b[31mgr\u00f6\u00dfe\n");
  EXPECT_EQ(written.text(), "{\"step\":1}\n\\xb0U\n\x1b[31mgr\u00f6\u00dfe\n");
}

TEST(RankOutput, OfALongLineIsNotCutWithinACharacter) {
  Written written;
  RankOutput output(written.file(), false);
  const std::string most(std::size_t{64} << 10, 'x');
  output.pass(most + "\xe2\x82");
  EXPECT_EQ(written.text(), most);
  output.pass("\xac\n");
  EXPECT_EQ(written.text(), most + "\u20ac\n");
}

TEST(RankOutput, OfALiveLineComesAtOnceAndEndsBeforeOtherWords) {
  Written written;
  RankOutput output(written.file(), true);
  output.pass("50 %");
  EXPECT_EQ(written.text(), "50 %");
  output.end_live_line();
  output.end_live_line();
  EXPECT_EQ(written.text(), "50 %\n\033[J");
  output.pass("60 %");
  output.finish();
  EXPECT_EQ(written.text(), "50 %\n\033[J60 %\n\033[J");
}

TEST(RankOutput, ClearsTheEchoOfAKeyWhereNoLiveLineIsDrawn) {
  Written written;
  RankOutput output(written.file(), true);
  output.pass("50 %");
  output.make_room_for_answer();
  EXPECT_EQ(written.text(), "50 %\n\033[J");
  output.pass("saved\n");
  output.make_room_for_answer();
  output.finish();
  EXPECT_EQ(written.text(), "50 %\n\033[Jsaved\n\r\033[J");
}

TEST(RankOutput, OfNoTerminalHasNoEchoToClear) {
  Written written;
  RankOutput output(written.file(), false);
  output.pass("saved\n");
  output.make_room_for_answer();
  EXPECT_EQ(written.text(), "saved\n");
}

}  // namespace
}  // namespace lockstep::launcher
