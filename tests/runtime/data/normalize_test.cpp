// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/normalize.h"

#include <gmock/gmock.h>

#include <memory>

#include "runtime/base/error.h"
#include "tests/runtime/data/ramp.h"

namespace lockstep::data {
namespace {

TEST(Normalize, IsForNumbers) {
  EXPECT_THROW(require_normalize({.mean = {0.5f}}, {.sample_shape = {8}, .vocabulary = 4}), FieldError);
  EXPECT_NO_THROW(require_normalize({}, {.sample_shape = {8}, .vocabulary = 4}));
}

TEST(Normalize, WorksByChannelOrForAll) {
  const auto ramp = std::make_shared<Ramp>(Shape{1, 2, 2});
  EXPECT_THAT(sample(Normalize(ramp, {{1}, {2}}), {}), testing::ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_THAT(sample(Normalize(ramp, {{1, 2}, {2, 4}}), {}), testing::ElementsAre(0, 0, 1, 0.5));
  EXPECT_THAT(sample(Normalize(ramp, {{}, {2, 4}}), {}), testing::ElementsAre(0.5, 0.5, 1.5, 1));
  EXPECT_THAT(sample(Normalize(ramp, {{1}, {}}), {}), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THROW(Normalize(ramp, {{1, 2, 3}, {}}), UsageError);
}

}  // namespace
}  // namespace lockstep::data
