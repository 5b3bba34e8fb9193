// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/data_note.h"

#include <gtest/gtest.h>

namespace lockstep::job {
namespace {

TEST(DataNote, IsTheParagraphOfTheOpeningComment) {
  EXPECT_EQ(data_note("# A job.\n# Data: from there,\n# as files.\n#   lockstep train\n# More.\nname: \"x\"\n"),
            "Data: from there, as files.");
  EXPECT_EQ(data_note("# Data: from there\r\n#\n# More.\n"), "Data: from there");
  EXPECT_EQ(data_note("# Data: from there"), "Data: from there");
}

TEST(DataNote, IsEmptyWhereTheOpeningCommentHasNone) {
  EXPECT_EQ(data_note(""), "");
  EXPECT_EQ(data_note("name: \"x\"\n# Data: from there\n"), "");
  EXPECT_EQ(data_note("# A job of Data: x\n#\n"), "");
}

}  // namespace
}  // namespace lockstep::job
