// SPDX-License-Identifier: Apache-2.0
// A step's clock on a GPU, which is late.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/ops/ops.h"
#include "runtime/step/step_clock.h"
#include "tests/support/devices.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::step {
namespace {

using devices::kGpu;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kHeld = milliseconds(5);

/// Work that the device comes to and does not get past before release(), and that holds it for kHeld at least.
class Held {
 public:
  Held() {
    gpu::emulation::append(Stream::current(kGpu), [gate = gate_] {
      gate->reached.set_value(Clock::now());
      gate->released.get_future().wait();
    });
  }
  void release() {
    std::this_thread::sleep_until(gate_->reached.get_future().get() + kHeld);
    gate_->released.set_value();
  }

 private:
  struct Gate {
    std::promise<Clock::time_point> reached;
    std::promise<void> released;
  };
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

nanoseconds of_range(const StepClock& clock, std::string_view name) {
  const auto at = std::ranges::find(clock.operations(), name, &OperationTimes::name);
  return at == clock.operations().end() ? nanoseconds(-1) : at->forward.time;
}

nanoseconds part(const StepTimes& times, StepPart part) { return times.parts[static_cast<std::size_t>(part)]; }

TEST(StepClockOfGpu, GivesTheDevicesTimeToWhatItWorkedOn) {
  StepClock clock(kGpu);
  clock.begin();
  clock.phase_begins(Phase::kForward, 1, 0);
  std::vector<Held> held(1);
  { const TraceRange range("a wait that is over for the host", RangeKind::kCommunication); }
  clock.phase_begins(Phase::kUpdate, 1, 0);
  held.front().release();
  const StepTimes times = clock.end();
  EXPECT_GE(part(times, StepPart::kForward), kHeld);
  EXPECT_GE(times.total(), kHeld);
  EXPECT_EQ(part(times, StepPart::kCommunication), of_range(clock, "a wait that is over for the host"));
}

TEST(StepClockOfGpu, ACollectiveThatTheDeviceWaitsForIsCommunication) {
  StepClock clock(kGpu);
  clock.begin();
  clock.phase_begins(Phase::kBackward, 1, 0);
  std::vector<Held> held;
  {
    const TraceRange range("all_reduce", RangeKind::kCommunication);
    held.emplace_back();
  }
  held.front().release();
  const StepTimes times = clock.end();
  EXPECT_GE(part(times, StepPart::kCommunication), kHeld);
  EXPECT_GE(of_range(clock, "all_reduce"), kHeld);
}

TEST(StepClockOfGpu, NothingWaitsMeanwhile) {
  const Tensor x = Tensor::zeros({4}, DType::kFloat32, kGpu);
  StepClock clock(kGpu);
  clock.begin();
  const std::uint64_t before = gpu::host_waits();
  clock.phase_begins(Phase::kForward, 1, 0);
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = ops::add(y, x);
  EXPECT_EQ(gpu::host_waits(), before);
  clock.end();
  EXPECT_LE(gpu::host_waits(), before + 1);
  EXPECT_EQ(std::ranges::count(clock.operations(), std::string_view("add"), &OperationTimes::name), 1);
  EXPECT_EQ(clock.operations().front().forward.calls, 10);
}

TEST(StepClockOfGpu, TellsOfEventsInTheirOrderWhenTheStepHasEnded) {
  std::vector<ClockedEvent> events;
  StepClock clock(
      kGpu, [] { return Clock::now().time_since_epoch(); },
      [&](const ClockedEvent& event) { events.push_back(event); });
  const nanoseconds before = Clock::now().time_since_epoch();
  clock.begin();
  clock.phase_begins(Phase::kForward, 1, 0);
  { const TraceRange range("inner", RangeKind::kWork); }
  EXPECT_TRUE(events.empty());
  clock.end();
  const auto inner = std::ranges::find(events, std::string_view("inner"), &ClockedEvent::name);
  const auto forward = std::ranges::find(events, std::string_view("forward"), &ClockedEvent::name);
  ASSERT_NE(inner, events.end());
  ASSERT_NE(forward, events.end());
  EXPECT_LE(forward->begin, inner->begin);
  EXPECT_LE(inner->begin, inner->end);
  EXPECT_LE(inner->end, forward->end);
  EXPECT_GE(forward->begin, before);
}

TEST(StepClockOfGpu, WhatTheDeviceHasMetIsThrownAtTheEnd) {
  StepClock clock(kGpu);
  clock.begin();
  clock.phase_begins(Phase::kForward, 1, 0);
  gpu::set_failure(kGpu, std::make_exception_ptr(std::runtime_error("a rank is gone")));
  EXPECT_THROW(clock.end(), std::runtime_error);
  EXPECT_FALSE(clock.running());
  gpu::set_failure(kGpu, nullptr);
  clock.begin();
  clock.phase_begins(Phase::kForward, 2, 0);
  EXPECT_GE(clock.end().total(), nanoseconds(0));
}

// A range ends while an exception passes: nothing may be thrown there.
TEST(StepClockOfGpu, ADeviceThatHasFailedEndsNoRangeWithAnException) {
  StepClock clock(kGpu);
  clock.begin();
  try {
    const TraceRange range("update", RangeKind::kWork);
    gpu::set_failure(kGpu, std::make_exception_ptr(std::runtime_error("a rank is gone")));
    throw std::logic_error("whatever passes");
  } catch (const std::logic_error&) {
  }
  EXPECT_THROW(clock.end(), std::runtime_error);
  EXPECT_FALSE(clock.running());
  gpu::set_failure(kGpu, nullptr);
}

// As a communication hook does.
TEST(StepClockOfGpu, WorkOnAnotherStreamTakesNoTimeOfTheStepsOwn) {
  const Stream lane = Stream::create(kGpu, "lane");
  std::vector<ClockedEvent> events;
  StepClock clock(
      kGpu, [] { return Clock::now().time_since_epoch(); },
      [&](const ClockedEvent& event) { events.push_back(event); });
  clock.begin();
  clock.phase_begins(Phase::kForward, 1, 0);
  std::vector<Held> held;
  lane.enqueue([&] {
    held.emplace_back();
    const TraceRange range("hook", RangeKind::kWork);
  });
  const StepTimes times = clock.end();
  held.front().release();
  lane.synchronize();
  EXPECT_LE(of_range(clock, "hook"), times.total());
  for (const ClockedEvent& event : events) EXPECT_LE(event.begin, event.end) << event.name;
}

}  // namespace
}  // namespace lockstep::step
