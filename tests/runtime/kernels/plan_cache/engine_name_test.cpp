// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/engine_name.h"

#include <gmock/gmock.h>

namespace lockstep::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(EngineName, IsAnEngineAndItsKnobs) {
  const auto name = EngineName::parse("eng12_k2=9_k24=0_k5=-1");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->engine, 12);
  EXPECT_THAT(name->knobs, ElementsAre(Pair(2, 9), Pair(24, 0), Pair(5, -1)));
  EXPECT_THAT(EngineName::parse("eng0")->knobs, IsEmpty());
}

TEST(EngineName, NothingElseIsOne) {
  for (const char* text : {"", "eng", "12", "INVALID_ENGINE_NAME_CFG", "eng1_", "eng1_k", "eng1_k2", "eng1_k2=",
                           "eng1_k2=x", "eng1 _k2=1", "eng1_k2=1 ", "eng99999999999999999999", "eng1_k99999999999=1"}) {
    EXPECT_FALSE(EngineName::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace lockstep::kernels
