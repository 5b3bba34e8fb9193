// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/metrics_tail.h"

#include "runtime/base/error.h"
#include "tests/runtime/train/history/history_fixture.h"

namespace lockstep::train {
namespace {

class MetricsTailTest : public History {
 protected:
  MetricsTail tail(const std::string& text, std::uint64_t most = 1 << 20) {
    write(folder_ / "metrics.jsonl", text);
    return read_metrics_tail(folder_ / "metrics.jsonl", most);
  }
};

TEST_F(MetricsTailTest, HoldsTheEventsAndTheLastStepsInTheirOrder) {
  std::string text;
  for (int i = 1; i <= 50; ++i) text += step(i, 1.0) + (i % 10 == 0 ? eval(i, 0.5) : "");
  const MetricsTail found = tail(text);
  ASSERT_EQ(found.events.size(), 5);
  EXPECT_EQ(found.events.front()["step"], 10);
  ASSERT_EQ(found.steps.size(), 32);
  EXPECT_EQ(found.steps.front()["step"], 19);
  EXPECT_EQ(found.steps.back()["step"], 50);
  EXPECT_TRUE(found.whole);
  EXPECT_TRUE(found.end.is_null());
}

TEST_F(MetricsTailTest, OfALongFileIsItsEnd) {
  std::string text;
  for (int i = 1; i <= 100; ++i) text += step(i, 1.0);
  const MetricsTail found = tail(text, 1000);
  EXPECT_FALSE(found.whole);
  ASSERT_GT(found.steps.size(), 3U);
  EXPECT_EQ(found.steps.back()["step"], 100);
  EXPECT_EQ(found.steps.front()["step"], 101 - static_cast<int>(found.steps.size()));
}

TEST_F(MetricsTailTest, LeavesOutHalfALineAndWhatIsNone) {
  const MetricsTail found =
      tail(step(1, 1.0) + "[1]\n\xff\xfe\n{\"event\":\"eval\",\"ste\n" + step(2, 1.0) + "{\"step\":3,\"lo");
  EXPECT_TRUE(found.events.empty());
  ASSERT_EQ(found.steps.size(), 2);
  EXPECT_EQ(found.steps.back()["step"], 2);
}

TEST_F(MetricsTailTest, KnowsWhetherStepsFollowAnEnd) {
  const std::string ended = step(1, 1.0) + event("preempted", 1, ",\"exit_code\":75");
  EXPECT_FALSE(tail(ended).trained_after_end);
  EXPECT_EQ(tail(ended).end["exit_code"], 75);
  EXPECT_FALSE(tail(ended + event("resumed", 1)).trained_after_end);
  EXPECT_TRUE(tail(ended + event("resumed", 1) + step(2, 1.0)).trained_after_end);
}

TEST_F(MetricsTailTest, OfAnEmptyFileIsEmptyAndOfNoneAnError) {
  EXPECT_TRUE(tail("").steps.empty());
  EXPECT_THROW(read_metrics_tail(folder_ / "nothing"), StorageError);
}

}  // namespace
}  // namespace lockstep::train
