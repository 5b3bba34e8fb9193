// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/printable.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("two\nlines\tof gr\u00f6\u00dfe"), "two\nlines\tof gr\u00f6\u00dfe");
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable(std::string("a\x1b[2J\r\0\x7f", 7)), "a\\x1b[2J\\x0d\\x00");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
}

// On a terminal of 8 bits 0x9b does what ESC [ does; in UTF-8 U+009B is the same.
TEST(Printable, WritesControlCharactersBeyondAsciiOut) {
  EXPECT_EQ(printable("a\x9b"
                      "2J"),
            "a\\x9b2J");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9b\xc2\x9f"), "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
  EXPECT_EQ(printable("\u00a0\u00e9"), "\u00a0\u00e9");
}

TEST(Printable, LeavesEveryLengthOfUtf8AsItIs) {
  const std::string ends_of_ranges = "\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff";
  EXPECT_EQ(printable(ends_of_ranges), ends_of_ranges);
}

TEST(Printable, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(printable("caf\xe9!"), "caf\\xe9!");                     // Latin-1
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                    // overlong: ESC
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");           // overlong: U+009B
  EXPECT_EQ(printable("\xf0\x80\x80\x80"), "\\xf0\\x80\\x80\\x80");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                      // its end is missing
  EXPECT_EQ(printable("\xe2\x82z\xe2\x82\xac"), "\\xe2\\x82z\u20ac");  // and the next one is whole
}

TEST(Printable, KeepsControlCharactersWhereBytesAloneAreInDoubt) {
  EXPECT_EQ(valid_utf8("\x1b[31mgr\u00f6\u00dfe\r\n"), "\x1b[31mgr\u00f6\u00dfe\r\n");
  EXPECT_EQ(valid_utf8("\xb0U\n"), "\\xb0U\n");
}

}  // namespace
}  // namespace lockstep
