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

}  // namespace
}  // namespace lockstep
