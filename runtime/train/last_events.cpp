// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/last_events.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/host_name.h"
#include "runtime/step/step_clock.h"
#include "runtime/tensor/trace_range.h"
#include "runtime/train/chrome_trace.h"
#include "runtime/train/rank_clocks.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;
using std::chrono::nanoseconds;

namespace {

constexpr const char* kStep = "step";
constexpr const char* kPhase = "phase";

struct Thread {
  pid_t id = gettid();
  std::array<char, 16> name{};

  Thread() { pthread_getname_np(pthread_self(), name.data(), name.size()); }
};

const Thread& own_thread() {
  static const thread_local Thread thread;
  return thread;
}

struct Event {
  std::string_view name;
  std::string_view category;
  std::uint64_t step = 0;  ///< of a step
  Thread thread = own_thread();
  nanoseconds begin = own_time();
  nanoseconds end{0};
};

/// Outlives every thread that may be within a range: those of a transport are, when a run ends by an error.
class Ring final : public RangeObserver {
 public:
  void begin(std::string_view name, std::string_view category, std::uint64_t step = 0) {
    const Event event{.name = name, .category = category, .step = step};
    const std::lock_guard lock(mutex_);
    happens_at(event.begin);
    open_.push_back(event);
  }

  /// The innermost of this thread; of `category` alone, where one is given.
  void end(std::string_view category = {}) {
    const nanoseconds now = own_time();
    const std::lock_guard lock(mutex_);
    const auto innermost = std::find_if(open_.rbegin(), open_.rend(),
                                        [](const Event& event) { return event.thread.id == own_thread().id; });
    if (innermost == open_.rend() || (!category.empty() && innermost->category != category)) return;
    innermost->end = now;
    happens_at(now);
    has_stepped_ = has_stepped_ || innermost->category == kStep;
    if (ended_.size() < LastEvents::kKept) {
      ended_.push_back(*innermost);
    } else {
      ended_[oldest_] = *innermost;
      oldest_ = (oldest_ + 1) % LastEvents::kKept;
    }
    open_.erase(std::next(innermost).base());
  }

  void range_begins(const char* name, RangeKind kind) override { begin(name, name_of(kind)); }
  void range_ends() override { end(); }

  void clear() {
    const std::lock_guard lock(mutex_);
    open_.clear();
    ended_.clear();
    ended_.reserve(LastEvents::kKept);
    oldest_ = 0;
    newest_ = longest_ = nanoseconds(0);
    has_stepped_ = false;
  }

  /// Drops the events of this thread that have not ended: an error has ended the work itself.
  void forget_open(pid_t thread) {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_, [thread](const Event& event) { return event.thread.id == thread; });
  }

  std::optional<LastEvents::Silence> silence(pid_t thread) const {
    const std::lock_guard lock(mutex_);
    bool steps = false, waits = false;
    for (const Event& event : open_) {
      if (event.thread.id != thread) continue;
      const bool is_step = event.category == kStep;
      steps = steps || is_step;
      waits = waits || (!is_step && event.category != kPhase && event.category != name_of(RangeKind::kWork));
    }
    if (!steps && !waits) return std::nullopt;
    return LastEvents::Silence{.since = newest_, .waits = waits, .longest = has_stepped_ ? longest_ : nanoseconds(0)};
  }

  /// The oldest first; those that have not ended behind the others.
  std::vector<Event> events() const {
    const std::lock_guard lock(mutex_);
    std::vector<Event> events(ended_.begin() + static_cast<std::ptrdiff_t>(oldest_), ended_.end());
    events.insert(events.end(), ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(oldest_));
    events.insert(events.end(), open_.begin(), open_.end());
    return events;
  }

 private:
  void happens_at(nanoseconds time) {
    if (newest_ > nanoseconds(0)) longest_ = std::max(longest_, time - newest_);
    newest_ = time;
  }

  mutable std::mutex mutex_;
  std::vector<Event> open_;
  std::vector<Event> ended_;
  std::size_t oldest_ = 0;
  nanoseconds newest_{0};   ///< when something began or ended
  nanoseconds longest_{0};  ///< between two such times
  bool has_stepped_ = false;
};

Ring& ring() {
  static Ring* const all = new Ring;
  return *all;
}

}  // namespace

LastEvents::LastEvents() : thread_(own_thread().id) {
  observe_ranges(&ring());
  RangeObserver* const other = observe_other_ranges(&ring());
  observes_others_ = other == nullptr;
  if (other != nullptr) {
    observe_other_ranges(other);
  } else {
    ring().clear();
  }
}

LastEvents::~LastEvents() {
  observe_ranges(nullptr);
  ring().forget_open(thread_);
  if (observes_others_) observe_other_ranges(nullptr);
}

void LastEvents::step_begins(std::uint64_t step) { ring().begin(kStep, kStep, step); }

void LastEvents::phase_begins(step::Phase phase, std::uint64_t, std::uint32_t) {
  ring().end(kPhase);
  ring().begin(step::name_of(step::part_of(phase)), kPhase);
}

void LastEvents::step_ends(std::uint64_t) {
  ring().end(kPhase);
  ring().end(kStep);
}

std::optional<LastEvents::Silence> LastEvents::silence() const { return ring().silence(thread_); }

std::string LastEvents::text(int rank, const std::string& reason) const {
  const nanoseconds to_1970 = std::chrono::system_clock::now().time_since_epoch() - own_time();
  const auto microseconds = [to_1970](nanoseconds time) {
    return 1e-3 * static_cast<double>((time + to_1970).count());
  };
  Json all = Json::array();
  all.push_back(trace_name({rank, thread_}, "process_name", "rank " + std::to_string(rank)));
  std::vector<pid_t> named;
  for (const Event& event : ring().events()) {
    const TracePlace place{rank, event.thread.id};
    if (std::ranges::find(named, event.thread.id) == named.end()) {
      named.push_back(event.thread.id);
      all.push_back(trace_name(place, "thread_name", event.thread.id == thread_ ? "train" : event.thread.name.data()));
    }
    const bool is_open = event.end == nanoseconds(0);
    all.push_back(
        is_open ? open_trace_event(place, event.name, event.category, microseconds(event.begin))
                : trace_event(place, event.name, event.category, microseconds(event.begin), microseconds(event.end)));
    if (event.category == kStep) all.back()["args"] = {{"step", event.step}};
  }
  return Json{{"displayTimeUnit", "ms"},
              {"traceEvents", std::move(all)},
              {"metadata", {{"reason", reason}, {"rank", rank}, {"host", host_name()}}}}
      .dump();
}

}  // namespace lockstep::train
