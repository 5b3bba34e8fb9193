// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/nearest.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace lockstep {
namespace {

using testing::EndsWith;
using testing::StartsWith;

std::vector<std::string> columns(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("column" + std::to_string(100 + i));
  return names;
}

TEST(Nearest, IsTheNameThatATypistMeant) {
  EXPECT_EQ(nearest("stesp", {"seed", "steps", "loss"}), "steps");
  EXPECT_EQ(nearest("SGD", {"adam", "sgd"}), "sgd");
  EXPECT_EQ(nearest("frobnicate", {"seed", "steps"}), "");
  EXPECT_EQ(nearest("--nprocs", {"--out", "--nproc"}), "--nproc");
  EXPECT_EQ(nearest("--gpus", {"--out", "--nproc"}), "");
}

TEST(NameList, OfALineIsWhole) {
  EXPECT_EQ(name_list("z", std::vector<std::string>{"a", "b", "c"}, "--help lists them"), "a, b, c");
  EXPECT_EQ(name_list("z", std::vector<std::string>{}), "");
}

TEST(NameList, OfMoreThanALineEndsWithACountAndBeginsWithTheNearestName) {
  const std::vector<std::string> names = columns(400);
  const std::string list = name_list("column317", names);
  EXPECT_THAT(list, StartsWith("column317, column"));
  EXPECT_LT(list.size(), 140u);
  const auto shown = static_cast<std::size_t>(std::count(list.begin(), list.end(), ',') + 1);
  EXPECT_THAT(list, EndsWith(" and " + std::to_string(names.size() - shown) + " more"));
  EXPECT_THAT(name_list("column317", names, "a page lists them"), EndsWith(" more: a page lists them"));
}

TEST(NameList, OfNamesOfMoreThanALineHasOne) {
  const std::vector<std::string> names{std::string(300, 'x'), std::string(300, 'y')};
  EXPECT_EQ(name_list("yy", names), std::string(300, 'y') + " and 1 more");
}

TEST(Suggestion, ListsWhatThereIsWhereNothingIsClose) {
  EXPECT_EQ(suggestion("stepz", {"seed", "steps"}), "did you mean \"steps\"?");
  EXPECT_EQ(suggestion("frobnicate", {"seed", "steps"}), "known: seed, steps");
}

}  // namespace
}  // namespace lockstep
