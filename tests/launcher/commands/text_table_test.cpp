// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/text_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep::launcher {
namespace {

const std::vector<TableColumn> kColumns{{.title = "run", .least = 6},
                                        {.title = "status", .goes = 1},
                                        {.title = "rate", .right = true, .goes = 2},
                                        {.title = "words", .goes = 3, .least = 5}};
const std::vector<std::vector<std::string>> kRows{{"first", "done", "5", "some words"},
                                                  {"a-long-name", "running", "1000", ""}};

TEST(TextTable, PutsNumbersBelowEachOther) {
  EXPECT_EQ(text_table(kColumns, kRows, 0),
            "run          status   rate  words\n"
            "first        done        5  some words\n"
            "a-long-name  running  1000\n");
}

TEST(TextTable, FitsAnyWidth) {
  for (std::size_t width = 1; width < 60; ++width) {
    std::istringstream lines(text_table(kColumns, kRows, width));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width);
  }
}

TEST(TextTable, CutsTextsBeforeAColumnLeaves) {
  EXPECT_EQ(text_table(kColumns, kRows, 33),
            "run          status   rate  words\n"
            "first        done        5  som..\n"
            "a-long-name  running  1000\n");
  EXPECT_EQ(text_table(kColumns, kRows, 20),
            "run          status\n"
            "first        done\n"
            "a-long-name  running\n");
  EXPECT_EQ(text_table(kColumns, kRows, 16),
            "run      status\n"
            "first    done\n"
            "a-lon..  running\n");
}

TEST(TextTable, LeavesOutAnEmptyColumnAndCountsCharacters) {
  EXPECT_EQ(
      text_table({{.title = "a"}, {.title = "b"}, {.title = "c"}}, {{"\u00e4\u00f6", "", "1"}, {"xyz", "", "2"}}, 0),
      "a    c\n\u00e4\u00f6   1\nxyz  2\n");
}

}  // namespace
}  // namespace lockstep::launcher
