// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/field_checks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(FieldChecks, KeepWhatIsInRange) {
  FieldChecks checks;
  EXPECT_TRUE(checks.positive(1e-300, "a"));
  EXPECT_TRUE(checks.not_negative(0, "b"));
  EXPECT_TRUE(checks.at_least_one(1, "c"));
  EXPECT_TRUE(checks.fraction(0, "d"));
  EXPECT_TRUE(checks.check(true, "e", "anything", 0));
  EXPECT_TRUE(checks.problems().empty());
  EXPECT_NO_THROW(require_none(checks.problems(), "options"));
}

TEST(FieldChecks, NameWhatIsNot) {
  FieldChecks checks;
  for (const double value : {0.0, -1.0, std::nan(""), kInfinity}) EXPECT_FALSE(checks.positive(value, "a"));
  for (const double value : {-1e-300, std::nan(""), kInfinity}) EXPECT_FALSE(checks.not_negative(value, "b"));
  for (const double value : {0.5, std::nan(""), kInfinity}) EXPECT_FALSE(checks.at_least_one(value, "c"));
  for (const double value : {1.0, -0.5, std::nan("")}) EXPECT_FALSE(checks.fraction(value, "d"));
  EXPECT_FALSE(checks.check(false, "e", "<= f", 0.1, {"f"}));
  EXPECT_EQ(checks.problems().size(), 14u);
  EXPECT_EQ(checks.problems().front().message, "must be > 0, is 0");
  EXPECT_EQ(checks.problems().back().message, "must be <= f, is 0.1");
  EXPECT_EQ(checks.problems().back().compared_with, std::vector<std::string>{"f"});
}

TEST(FieldChecks, TheFirstProblemIsThrown) {
  FieldChecks checks;
  checks.positive(-2, "first");
  checks.error("second", "is odd");
  EXPECT_THAT([&] { require_none(checks.problems(), "optimizer.sgd"); },
              ::testing::ThrowsMessage<FieldError>("optimizer.sgd.first: must be > 0, is -2"));
}

}  // namespace
}  // namespace lockstep
