// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/name_pattern.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace lockstep {
namespace {

TEST(NamePattern, IsSearchedInAName) {
  EXPECT_TRUE(NamePattern("bias$").is_in("layer0.bias"));
  EXPECT_FALSE(NamePattern("^bias").is_in("layer0.bias"));
  EXPECT_TRUE(NamePattern("layer[0-3]\\.").is_in("block.layer2.weight"));
  EXPECT_TRUE(NamePattern("").is_in("weight"));
}

TEST(NamePattern, ThatIsNoExpressionIsTold) {
  EXPECT_EQ(NamePattern::problem_of("bias$"), "");
  EXPECT_NE(NamePattern::problem_of("["), "");
  EXPECT_NE(NamePattern::problem_of("(?=a)"), "");
  EXPECT_NE(NamePattern::problem_of("((a{900}){900}){900}"), "") << "it takes more memory than there is";
  EXPECT_THROW(NamePattern("["), std::invalid_argument);
}

// A search that goes back would take 2^200 steps.
TEST(NamePattern, EndsForEveryExpression) {
  const std::string name = std::string(200, 'a') + "!";
  EXPECT_FALSE(NamePattern("^(a+)+$").is_in(name));
  EXPECT_FALSE(NamePattern("(.*)*(.*)*x$").is_in(name));
}

}  // namespace
}  // namespace lockstep
