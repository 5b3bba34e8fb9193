// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/last_events.h"

#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/trace_range.h"
#include "runtime/train/rank_clocks.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using step::Phase;
using testing::ElementsAre;

/// "name" of what has ended, "name..." of what has not, in the order of the text.
std::vector<std::string> names(const LastEvents& events) {
  std::vector<std::string> all;
  const json told = json::parse(events.text(0, ""));
  for (const json& event : told["traceEvents"]) {
    if (event["ph"] != "M") all.push_back(event["name"].get<std::string>() + (event["ph"] == "B" ? "..." : ""));
  }
  return all;
}

void take_step(LastEvents& events, std::uint64_t number) {
  events.step_begins(number);
  events.phase_begins(Phase::kForward, number, 0);
  events.phase_begins(Phase::kUpdate, number, 0);
  events.step_ends(number);
}

TEST(LastEvents, AreStepsPhasesAndRanges) {
  LastEvents events;
  events.step_begins(7);
  {
    const TraceRange range("a range");
    std::thread([] { const TraceRange other("of another thread", RangeKind::kCommunication); }).join();
  }
  events.phase_begins(Phase::kForward, 7, 0);
  events.phase_begins(Phase::kBackward, 7, 0);
  EXPECT_THAT(names(events), ElementsAre("of another thread", "a range", "forward", "step...", "backward..."));
  events.step_ends(7);
  EXPECT_THAT(names(events), ElementsAre("of another thread", "a range", "forward", "backward", "step"));
}

TEST(LastEvents, AreWrittenWithTheirPlaceAndTime) {
  using std::chrono::system_clock;
  const auto microseconds_now = [] {
    return std::chrono::duration<double, std::micro>(system_clock::now().time_since_epoch()).count();
  };
  LastEvents events;
  const double before = microseconds_now();
  take_step(events, 12);
  const double behind = microseconds_now();
  const json told = json::parse(events.text(3, "a reason"));
  EXPECT_EQ(told["metadata"]["reason"], "a reason");
  EXPECT_EQ(told["metadata"]["rank"], 3);
  const json& step = told["traceEvents"].back();
  EXPECT_EQ(step["name"], "step");
  EXPECT_EQ(step["args"]["step"], 12);
  EXPECT_EQ(step["pid"], 3);
  // The two clocks may be corrected apart from each other.
  EXPECT_NEAR(step["ts"].get<double>(), before, 1e5 + behind - before);
  EXPECT_GE(step["dur"].get<double>(), 0);
}

TEST(LastEvents, TheOldestMakeRoom) {
  LastEvents events;
  take_step(events, 1);
  for (std::size_t i = 0; i < LastEvents::kKept - 2; ++i) const TraceRange range("later");
  const std::vector<std::string> left = names(events);
  ASSERT_EQ(left.size(), LastEvents::kKept);
  EXPECT_EQ(left[0], "optimizer");
  EXPECT_EQ(left[1], "step");
  EXPECT_EQ(left[2], "later");
  EXPECT_EQ(left.back(), "later");
}

TEST(LastEvents, HaveNoOperations) {
  LastEvents events;
  events.step_begins(1);
  const std::size_t before = names(events).size();
  Tensor x = Tensor::from(std::vector<float>{1, -2}, {2});
  x.set_requires_grad(true);
  ops::sum(ops::relu(ops::relu(x))).backward();
  const TraceRange range("a range");
  // That of the backward pass as a whole, and the one that is open.
  EXPECT_EQ(names(events).size(), before + 2);
}

TEST(LastEvents, AreSilentOnlyWhereTrainingWorksOrWaits) {
  LastEvents events;
  EXPECT_FALSE(events.silence());
  {
    const TraceRange range("save a checkpoint");
    EXPECT_FALSE(events.silence());
  }
  {
    const TraceRange range("wait for data", RangeKind::kData);
    EXPECT_TRUE(events.silence().value().waits);
  }
  events.step_begins(1);
  events.phase_begins(Phase::kForward, 1, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(own_time() - events.silence().value().since, std::chrono::milliseconds(20));
  EXPECT_FALSE(events.silence().value().waits);
  EXPECT_EQ(events.silence().value().longest.count(), 0);
  events.step_ends(1);
  EXPECT_FALSE(events.silence());
  events.step_begins(2);
  EXPECT_GE(events.silence().value().longest, std::chrono::milliseconds(20));
  const TraceRange range("all_reduce", RangeKind::kCommunication);
  EXPECT_TRUE(events.silence().value().waits);
}

TEST(LastEvents, WhatAnErrorLeavesOpenIsForgotten) {
  {
    LastEvents events;
    events.step_begins(1);
    events.phase_begins(Phase::kForward, 1, 0);
  }
  EXPECT_FALSE(LastEvents().silence());
}

}  // namespace
}  // namespace lockstep::train
