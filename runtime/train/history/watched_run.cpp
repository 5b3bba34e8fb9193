// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/watched_run.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/json_text.h"
#include "runtime/train/history/metrics_tail.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kPaceSeconds = 120.0;
constexpr std::size_t kPaceSteps = 10'000;

double number_or(const Json& value, double otherwise) { return value.is_number() ? value.get<double>() : otherwise; }

std::chrono::seconds rounded(double seconds) {
  constexpr double kMost = 1e9;
  return std::chrono::seconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, kMost) + 0.5));
}

}  // namespace

void WatchedRun::add(const Json& line) {
  const double time = number_or(field_of(line, "time"), last_time_);
  last_time_ = std::max(last_time_, time);
  const Json& event = field_of(line, "event");
  if (event.is_null()) return add_step(line, time);
  if (is_end(line)) end_ = line;
  // The pause before is none of the steps' time.
  if (event == "resumed" || event == "restarted") {
    pace_.clear();
    first_time_ = time;
  }
}

void WatchedRun::add_step(const Json& line, double time) {
  const Json& step = field_of(line, "step");
  if (!step.is_number_unsigned()) return;
  end_ = nullptr;
  progress_.step = step.get<std::uint64_t>();
  progress_.loss = number_or(field_of(line, "loss"), std::nan(""));
  progress_.samples_per_s = number_or(field_of(line, "samples_per_s"), 0.0);
  const double scale = number_or(field_of(line, "loss_scale"), 1.0);
  scale_changes_ = scale_changes_ || scale != 1.0;
  if (scale_changes_) progress_.loss_scale = scale;
  if (field_of(line, "skipped") == true) ++progress_.skips;
  lr_ = number_or(field_of(line, "lr"), 0.0);
  if (first_time_ == 0.0) first_time_ = time;
  if (!pace_.empty() && progress_.step <= pace_.back().second) pace_.clear();
  pace_.emplace_back(time, progress_.step);
  while (pace_.size() > kPaceSteps || time - pace_.front().first > kPaceSeconds) pace_.pop_front();
}

ProgressState WatchedRun::progress() const {
  ProgressState progress = progress_;
  progress.steps = std::max(steps_, progress_.step);
  progress.elapsed = rounded(last_time_ - first_time_);
  if (pace_.size() > 1 && steps_ >= progress_.step) {
    const double seconds = pace_.back().first - pace_.front().first;
    const auto done = static_cast<double>(pace_.back().second - pace_.front().second);
    progress.left = rounded(seconds / done * static_cast<double>(steps_ - progress_.step));
  }
  return progress;
}

}  // namespace lockstep::train
