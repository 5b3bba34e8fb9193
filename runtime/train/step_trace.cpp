// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_trace.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/step/replicated.h"
#include "runtime/step/step_clock.h"
#include "runtime/tensor/trace_range.h"
#include "runtime/train/chrome_trace.h"
#include "runtime/train/rank_clocks.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;
using std::chrono::nanoseconds;

namespace {

/// A step of a large model leaves a megabyte on each rank, all of which rank 0 holds at the end.
constexpr std::uint64_t kMostTraced = 100;
/// Numbers of a rank's threads: more than it has.
constexpr int kThreads = 1000;

/// Phases have ranges of their names, too, for NVIDIA's profilers.
bool is_phase_again(const step::ClockedEvent& event) {
  return event.category == name_of(RangeKind::kWork) &&
         (event.name == name_of(step::StepPart::kForward) || event.name == name_of(step::StepPart::kBackward));
}

std::string name_of_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

/// The ranges of the streams' threads, on which buckets travel.
class LaneRanges final : public RangeObserver {
 public:
  LaneRanges() : outer_(observe_other_ranges(this)) {}
  ~LaneRanges() override { stop(); }
  LaneRanges(const LaneRanges&) = delete;
  LaneRanges& operator=(const LaneRanges&) = delete;

  /// Of threads that work for the step, whose end has waited for them.
  void stop() {
    if (std::exchange(running_, false)) observe_other_ranges(outer_);
  }

  void range_begins(const char* name, RangeKind kind) override {
    const std::lock_guard lock(mutex_);
    Thread& thread = mine();
    thread.open.push_back({.name = name, .category = name_of(kind), .begin = own_time()});
  }
  void range_ends() override {
    const std::lock_guard lock(mutex_);
    Thread& thread = mine();
    if (thread.open.empty()) return;  // it began before
    thread.open.back().end = own_time();
    thread.events.push_back(std::move(thread.open.back()));
    thread.open.pop_back();
  }

  struct Thread {
    std::string name;
    std::vector<step::ClockedEvent> open;
    std::vector<step::ClockedEvent> events;
  };
  const std::map<std::thread::id, Thread>& threads() const { return threads_; }

 private:
  Thread& mine() {
    Thread& thread = threads_[std::this_thread::get_id()];
    if (thread.name.empty()) thread.name = name_of_thread();
    return thread;
  }

  bool running_ = true;
  RangeObserver* outer_;
  std::mutex mutex_;
  std::map<std::thread::id, Thread> threads_;
};

}  // namespace

struct StepTrace::Recording {
  Recording(comm::Communicator& communicator, Device device)
      : before(offset_to_rank_zero(communicator)), clock(device, own_time, [this](const step::ClockedEvent& event) {
          if (!is_phase_again(event)) events.push_back(event);
        }) {}

  ClockOffset before;
  std::vector<step::ClockedEvent> events;  ///< of the thread that trains
  LaneRanges lanes;
  step::StepClock clock;
};

TracedSteps traced_steps(const std::string& text) {
  TracedSteps steps;
  const char* const end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, steps.from);
  if (from.ec == std::errc() && from.ptr != end && *from.ptr == ':') {
    const auto to = std::from_chars(from.ptr + 1, end, steps.to);
    if (to.ec == std::errc() && to.ptr == end && steps.from >= 1 && steps.from <= steps.to) {
      if (steps.to - steps.from < kMostTraced) return steps;
      throw UsageError("--trace " + text + ": more than " + std::to_string(kMostTraced) + " steps",
                       "Trace fewer, as in --trace 100:104.");
    }
  }
  throw UsageError("--trace " + text + ": names no steps", "Give the first and the last one, as in --trace 100:104.");
}

StepTrace::StepTrace(comm::World& world, TracedSteps steps, std::filesystem::path file, Device device)
    : world_(world), steps_(steps), file_(std::move(file)), device_(device) {}

StepTrace::~StepTrace() = default;

bool StepTrace::needs_phases(std::uint64_t step) const { return steps_.from <= step && step <= steps_.to; }

void StepTrace::step_begins(std::uint64_t step) {
  // A run may have been resumed within the steps.
  if (recording_ || !needs_phases(step)) return;
  recording_ = std::make_unique<Recording>(*world_.communicator(), device_);
  recording_->clock.begin();
}

void StepTrace::phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) {
  if (recording_) recording_->clock.phase_begins(phase, step, micro_batch);
}

void StepTrace::step_ends(std::uint64_t step) {
  if (!recording_) return;
  recording_->clock.step_ends(step);
  recording_->clock.end();
  if (step == steps_.to) return finish();
  recording_->clock.begin();
}

void StepTrace::finish() {
  if (!recording_) return;
  const std::unique_ptr<Recording> recording = std::move(recording_);
  if (recording->clock.running()) recording->clock.end();
  recording->lanes.stop();
  comm::Communicator& communicator = *world_.communicator();
  const ClockOffset behind = offset_to_rank_zero(communicator);

  Json mine = Json::array();
  const int rank = communicator.rank();
  const auto place = [&](int thread) { return TracePlace{rank, (rank + 1) * kThreads + thread}; };
  const auto name = [&](const char* what, int thread, const std::string& text) {
    mine.push_back(trace_name(place(thread), what, text));
  };
  const auto add = [&](const step::ClockedEvent& event, int thread) {
    const auto microseconds = [&](nanoseconds time) {
      return 1e-3 * static_cast<double>(at_rank_zero(time, recording->before, behind).count());
    };
    mine.push_back(trace_event(place(thread), std::string(event.name) + (event.is_backward ? " backward" : ""),
                               event.category, microseconds(event.begin), microseconds(event.end)));
  };
  name("process_name", 0, "rank " + std::to_string(rank));
  name("thread_name", 0, "train");
  for (const step::ClockedEvent& event : recording->events) add(event, 0);
  int number = 0;
  for (const auto& [id, thread] : recording->lanes.threads()) {
    name("thread_name", ++number, thread.name);
    for (const step::ClockedEvent& event : thread.events) add(event, number);
  }
  const double error_us = 1e-3 * static_cast<double>(std::max(recording->before.error, behind.error).count());
  const std::string told = Json{{"events", std::move(mine)}, {"error_us", error_us}}.dump();
  Json trace{
      {"displayTimeUnit", "ms"}, {"traceEvents", Json::array()}, {"metadata", {{"clock_error_us", Json::array()}}}};
  // One after the other: rank 0 alone holds them all.
  for (int from = 0; from < communicator.size(); ++from) {
    const std::string text = communicator.broadcast_text(rank == from ? told : "", from);
    if (rank != 0) continue;
    Json part = Json::parse(text);
    for (Json& event : part["events"]) trace["traceEvents"].push_back(std::move(event));
    trace["metadata"]["clock_error_us"].push_back(part["error_us"]);
  }
  step::on_rank_zero(communicator, [&] {
    if (const std::error_code error = write_whole_file(file_, trace.dump())) {
      throw StorageError("cannot write " + file_.string() + ": " + error.message());
    }
  });
}

}  // namespace lockstep::train
