// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/curves.h"

#include <gtest/gtest.h>

#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

Json line(std::uint64_t step, double loss, bool skipped = false) {
  return {{"step", step}, {"epoch", 0}, {"time", 1e9}, {"loss", loss}, {"skipped", skipped}};
}

TEST(Curves, HaveAPointAStepWhereTheyAreFew) {
  Curves curves(CurveGrid::of(3, 100));
  curves.add(line(1, 0.5));
  curves.add(line(3, 0.123456789, true));
  EXPECT_EQ(curves.to_json(), (Json{{"loss", {0.5, nullptr, 0.12346}}, {"skips", {0, nullptr, 1}}}));
}

TEST(Curves, OfManyStepsKeepTheLowestAndTheHighestOfEachBucketInTheirOrder) {
  const CurveGrid grid = CurveGrid::of(1000, 4);
  EXPECT_EQ(grid.steps_a_bucket, 500);
  Curves curves(grid);
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    curves.add(line(step, step == 250 ? 100.0 : step == 300 ? -100.0 : step == 600 ? -7.0 : step == 700 ? 7.0 : 0.0));
  }
  EXPECT_EQ(curves.to_json()["loss"], (Json{100.0, -100.0, -7.0, 7.0}));
}

TEST(Curves, DoNotGrowWithTheRun) {
  const CurveGrid grid = CurveGrid::of(1'000'000'000, 2000);
  Curves curves(grid);
  for (std::uint64_t step = 1; step <= 1'000'000'000; step += 999'999) curves.add(line(step, 1.0));
  EXPECT_LE(curves.to_json()["loss"].size(), 2000U);
}

TEST(Curves, PassOverAStepThatIsNoNumberOrBeyondAll) {
  Curves curves(CurveGrid{});
  curves.add(Json{{"step", "x"}, {"loss", 1}});
  curves.add(line(0, 1.0));
  curves.add(line(std::uint64_t{1} << 62, 1.0));
  EXPECT_TRUE(curves.to_json().empty());
}

}  // namespace
}  // namespace lockstep::train
