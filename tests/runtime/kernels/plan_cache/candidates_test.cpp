// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/candidates.h"

#include <gmock/gmock.h>

#include <set>
#include <stdexcept>
#include <vector>

namespace lockstep::kernels {
namespace {

/// Runs them where those of `failing` fail; what was tried, in order.
std::vector<std::size_t> tried(Candidates& candidates, const std::set<std::size_t>& failing, bool expected) {
  std::vector<std::size_t> numbers;
  EXPECT_EQ(candidates.run([&](std::size_t i) {
    numbers.push_back(i);
    return !failing.contains(i);
  }),
            expected);
  return numbers;
}

TEST(Candidates, TheFirstThatWorksIsTakenAndThoseThatFailedArePassedBy) {
  Candidates candidates(4);
  EXPECT_THAT(tried(candidates, {}, true), testing::ElementsAre(0));
  EXPECT_THAT(tried(candidates, {0, 1}, true), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(tried(candidates, {}, true), testing::ElementsAre(2));
  EXPECT_THAT(tried(candidates, {2, 3}, false), testing::ElementsAre(2, 3));
  EXPECT_THAT(tried(candidates, {}, false), testing::ElementsAre());
}

TEST(Candidates, OneThatThrowsHasNotFailed) {
  Candidates candidates(2);
  EXPECT_THROW(candidates.run([](std::size_t) -> bool { throw std::runtime_error("of earlier work"); }),
               std::runtime_error);
  EXPECT_THAT(tried(candidates, {}, true), testing::ElementsAre(0));
}

TEST(Candidates, NoneOfNothing) {
  Candidates candidates(0);
  EXPECT_THAT(tried(candidates, {}, false), testing::ElementsAre());
}

}  // namespace
}  // namespace lockstep::kernels
