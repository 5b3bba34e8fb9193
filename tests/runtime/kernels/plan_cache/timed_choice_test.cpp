// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/timed_choice.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace lockstep::kernels {
namespace {

namespace fs = std::filesystem;
using ::testing::Optional;
using Times = std::vector<std::optional<float>>;

/// A folder of its own, removed at the end.
class TimedChoiceTest : public ::testing::Test {
 protected:
  TimedChoiceTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-choice-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = pattern;
  }
  ~TimedChoiceTest() override { fs::remove_all(folder_); }

  PlanCache cache() const { return PlanCache(folder_); }
  /// What a process chooses that measures these times of a, b and c; `measured_` says whether it had to.
  std::optional<std::string> choose(const PlanCache& cache, const Times& times) {
    measured_ = false;
    return timed_choice(cache, "key", [&]() -> std::vector<TimedCandidate> {
      measured_ = true;
      return {{"a", times.at(0)}, {"b", times.at(1)}, {"c", times.at(2)}};
    });
  }

  std::string folder_;
  bool measured_ = false;
};

TEST_F(TimedChoiceTest, IsTheFastestAndIsTimedOnce) {
  EXPECT_THAT(choose(cache(), {3.0f, 1.0f, 2.0f}), Optional(std::string("b")));
  EXPECT_TRUE(measured_);
  EXPECT_THAT(choose(cache(), {1.0f, 3.0f, 2.0f}), Optional(std::string("b"))) << "a choice changes";
  EXPECT_FALSE(measured_);
}

TEST_F(TimedChoiceTest, WhatIsKeptHoldsWhereNothingCanBeTimed) {
  EXPECT_EQ(timed_choice(cache(), "key", nullptr), std::nullopt);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  choose(cache(), {3.0f, 1.0f, 2.0f});
  EXPECT_THAT(timed_choice(cache(), "key", nullptr), Optional(std::string("b")));
}

TEST_F(TimedChoiceTest, WhoeverKeepsFirstChoosesForAll) {
  const auto choice = timed_choice(cache(), "key", [&]() -> std::vector<TimedCandidate> {
    cache().keep("key", "other");  // another process, meanwhile
    return {{"a", 1.0f}};
  });
  EXPECT_THAT(choice, Optional(std::string("other")));
}

TEST_F(TimedChoiceTest, NoneWhereNoCandidateRuns) {
  EXPECT_EQ(choose(cache(), {std::nullopt, std::nullopt, std::nullopt}), std::nullopt);
  EXPECT_EQ(cache().find("key"), std::nullopt);
  EXPECT_THAT(choose(cache(), {std::nullopt, std::nullopt, 9.0f}), Optional(std::string("c")));
}

TEST_F(TimedChoiceTest, NoneOfNothing) {
  EXPECT_EQ(timed_choice(cache(), "key", [] { return std::vector<TimedCandidate>(); }), std::nullopt);
}

TEST_F(TimedChoiceTest, NoneWhereItCannotBeKept) { EXPECT_EQ(choose(PlanCache(""), {3.0f, 1.0f, 2.0f}), std::nullopt); }

TEST_F(TimedChoiceTest, ADamagedOneIsTimedAgain) {
  choose(cache(), {3.0f, 1.0f, 2.0f});
  std::ofstream(cache().path_of("key")) << "damaged";
  EXPECT_EQ(timed_choice(cache(), "key", nullptr), std::nullopt);
  EXPECT_THAT(choose(cache(), {1.0f, 3.0f, 2.0f}), Optional(std::string("a")));
  EXPECT_THAT(choose(cache(), {3.0f, 1.0f, 2.0f}), Optional(std::string("a")));
}

}  // namespace
}  // namespace lockstep::kernels
