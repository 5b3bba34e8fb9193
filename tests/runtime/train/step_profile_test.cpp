// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_profile.h"

#include <gmock/gmock.h>

#include "runtime/nn/layers.h"

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;
using testing::DoubleEq;
using testing::Optional;

step::OperationTimes::Pass pass(std::int64_t calls, milliseconds time, double operations, double bytes,
                                const char* implementation = nullptr) {
  return {.calls = calls, .time = time, .work = {operations, bytes}, .implementation = implementation};
}

TEST(StepProfile, SpreadsAreOfSortedValues) {
  const Spread spread = spread_of({5, 1, 3, 2, 4});
  EXPECT_EQ(spread.mean, 3);
  EXPECT_EQ(spread.p10, 1);
  EXPECT_EQ(spread.p50, 3);
  EXPECT_EQ(spread.p90, 4);
  EXPECT_EQ(spread_of({7}).p90, 7);
}

TEST(StepProfile, PassesAddUpOverLayersAndLayersOverPasses) {
  nn::Linear first(2, 2), second(2, 2);
  const std::deque<step::OperationTimes> operations{
      {.name = "linear",
       .layer = &first,
       .forward = pass(2, milliseconds(4), 4e8, 4e6, "brg"),
       .backward = pass(2, milliseconds(8), 8e8, 8e6)},
      {.name = "linear", .layer = &second, .forward = pass(2, milliseconds(4), 4e8, 4e6)},
      {.name = "linear", .layer = &second, .again = true, .forward = pass(2, milliseconds(2), 2e8, 2e6)},
      {.name = "relu", .layer = &second, .dtype = DType::kFloat16, .forward = pass(2, milliseconds(2), 0, 1e7)},
      {.name = "wait for data", .is_operation = false, .forward = pass(2, milliseconds(1), 0, 0)}};
  StepProfile profile{.steps = 2, .floors = {200, 400, 300, 10, 40}};
  fill_passes(profile, operations, [&](const nn::Module* module) { return module == &first ? "first" : "second"; });

  ASSERT_EQ(profile.passes.size(), 5u);
  const ProfiledPass& linear = profile.passes[0];
  EXPECT_EQ(linear.name, "linear");
  EXPECT_EQ(linear.calls, 2);
  EXPECT_EQ(linear.ms, 4);
  EXPECT_DOUBLE_EQ(linear.gflops, 100);
  EXPECT_THAT(linear.of_floor, Optional(DoubleEq(0.5)));
  EXPECT_EQ(linear.implementation, "brg");
  EXPECT_EQ(profile.passes[1].name, "linear backward");
  const auto named = [&](const std::string& name) -> const ProfiledPass& {
    return *std::ranges::find(profile.passes, name, &ProfiledPass::name);
  };
  EXPECT_EQ(named("linear again").ms, 1);
  // 5 MB a call come from memory.
  EXPECT_DOUBLE_EQ(named("relu").gb_per_s, 5);
  EXPECT_THAT(named("relu").of_floor, Optional(DoubleEq(0.5)));
  EXPECT_EQ(named("wait for data").of_floor, std::nullopt);

  ASSERT_EQ(profile.layers.size(), 2u);
  EXPECT_EQ(profile.layers[0].path, "first");
  EXPECT_EQ(profile.layers[0].forward_ms, 2);
  EXPECT_EQ(profile.layers[0].backward_ms, 4);
  EXPECT_EQ(profile.layers[1].forward_ms, 3);
  EXPECT_EQ(profile.layers[1].backward_ms, 1);
}

TEST(StepProfile, ASmallOperationIsComparedWithACopyInTheCache) {
  const MachineFloors floors{.memory_gb_per_s = 10, .cache_gb_per_s = 40};
  EXPECT_EQ(floors.gb_per_s(1e6), 40);
  EXPECT_EQ(floors.gb_per_s(1e7), 10);
}

TEST(StepProfile, AStragglerIsSlowerThanTheOthersByFar) {
  StepProfile profile;
  EXPECT_EQ(profile.straggler(), std::nullopt);
  profile.ranks = {{10, 5}, {10, 4.9}, {10, 1}};
  EXPECT_THAT(profile.straggler(), Optional(2));
  profile.ranks[2].waited_ms = 4;  // 6 ms beside 5
  EXPECT_EQ(profile.straggler(), std::nullopt);
  profile.ranks = {{10, {}}, {30, {}}};  // on a GPU, where waits are not known
  EXPECT_EQ(profile.straggler(), std::nullopt);
  profile.ranks = {{1, 0.5}, {1, 0}};  // twice, but half a millisecond
  EXPECT_EQ(profile.straggler(), std::nullopt);
}

}  // namespace
}  // namespace lockstep::train
