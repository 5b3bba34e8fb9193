// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_schedule.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/train/step_profile.h"

namespace lockstep::train {

namespace {

using std::chrono::nanoseconds;
using step::ClockedEvent;

/// A clock of the rank's own time.
class OwnTime {
 public:
  explicit OwnTime(const std::vector<ClockedEvent>& events) {
    begin_ = std::ranges::min_element(events, {}, &ClockedEvent::begin)->begin;
    for (const ClockedEvent& event : events) {
      if (event.category == "communication") waits_.emplace_back(event.begin, event.end);
    }
    std::ranges::sort(waits_);
  }

  double ms_at(nanoseconds time) const {
    nanoseconds waited{0}, counted = begin_;
    for (const auto& [begin, end] : waits_) {
      // A wait may lie within another.
      const nanoseconds from = std::max(begin, counted), to = std::min(end, time);
      if (to <= from) continue;
      waited += to - from;
      counted = to;
    }
    return std::chrono::duration<double, std::milli>(time - begin_ - waited).count();
  }

 private:
  nanoseconds begin_;
  std::vector<std::pair<nanoseconds, nanoseconds>> waits_;
};

double median(const std::vector<StepSchedule>& steps, double StepSchedule::*time) {
  std::vector<double> values;
  for (const StepSchedule& step : steps) values.push_back(step.*time);
  return spread_of(std::move(values)).p50;
}

std::vector<double> medians(const std::vector<StepSchedule>& steps, std::vector<double> StepSchedule::*times) {
  // A step may run fewer layers than another.
  std::size_t least = (steps.front().*times).size();
  for (const StepSchedule& step : steps) least = std::min(least, (step.*times).size());
  std::vector<double> result;
  for (std::size_t i = 0; i < least; ++i) {
    std::vector<double> values;
    for (const StepSchedule& step : steps) values.push_back((step.*times)[i]);
    result.push_back(spread_of(std::move(values)).p50);
  }
  return result;
}

}  // namespace

StepSchedule step_schedule_of(const std::vector<ClockedEvent>& events) {
  const OwnTime own(events);
  StepSchedule schedule;
  for (const ClockedEvent& event : events) {
    const double end = own.ms_at(event.end);
    schedule.step_ms = std::max(schedule.step_ms, end);
    if (event.category == "work" && event.name == "reduce a bucket") schedule.bucket_ready_ms.push_back(end);
    if (event.category == "operation" && event.name == "batch_norm") {
      (event.is_backward ? schedule.norm_backward_ms : schedule.norm_forward_ms).push_back(end);
    }
  }
  if (!schedule.bucket_ready_ms.empty()) schedule.reduction_ms = schedule.bucket_ready_ms.back();
  return schedule;
}

StepSchedule median_of(const std::vector<StepSchedule>& steps, double factor) {
  StepSchedule result = steps.front();
  for (const auto time : {&StepSchedule::reduction_ms, &StepSchedule::step_ms}) {
    result.*time = factor * median(steps, time);
  }
  for (const auto times :
       {&StepSchedule::bucket_ready_ms, &StepSchedule::norm_forward_ms, &StepSchedule::norm_backward_ms}) {
    result.*times = medians(steps, times);
    for (double& time : result.*times) time *= factor;
  }
  return result;
}

StepSchedule step_of(double samples, const MeasuredBatch& one, const MeasuredBatch& other) {
  const double part = (samples - one.samples) / (other.samples - one.samples);
  const auto between = [part](double a, double b) { return std::max(a + part * (b - a), 0.0); };
  StepSchedule result = one.step;
  for (const auto time : {&StepSchedule::reduction_ms, &StepSchedule::step_ms}) {
    result.*time = between(one.step.*time, other.step.*time);
  }
  for (const auto times :
       {&StepSchedule::bucket_ready_ms, &StepSchedule::norm_forward_ms, &StepSchedule::norm_backward_ms}) {
    const std::vector<double>& of_other = other.step.*times;
    std::vector<double>& own = result.*times;
    own.resize(std::min(own.size(), of_other.size()));
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = between(own[i], of_other[i]);
  }
  return result;
}

}  // namespace lockstep::train
