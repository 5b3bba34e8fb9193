// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "runtime/tensor/error.h"

namespace lockstep::optim {

namespace {

std::int64_t warmup_of(const job::Schedule& schedule) {
  switch (schedule.kind_case()) {
    case job::Schedule::kConstant:
      return schedule.constant().warmup_steps();
    case job::Schedule::kStep:
      return schedule.step().warmup_steps();
    case job::Schedule::kCosine:
      return schedule.cosine().warmup_steps();
    case job::Schedule::kLinear:
      return schedule.linear().warmup_steps();
    case job::Schedule::KIND_NOT_SET:
      return 0;
  }
  return 0;
}

/// The factor after warm-up; `progress` runs from 0 at its end to 1 at the last step.
double factor(const job::Schedule& schedule, std::int64_t applied_steps, double progress) {
  switch (schedule.kind_case()) {
    case job::Schedule::kStep:
      return std::pow(schedule.step().gamma(), std::ranges::count_if(schedule.step().milestones(), [&](auto milestone) {
                        return static_cast<std::int64_t>(milestone) <= applied_steps;
                      }));
    case job::Schedule::kCosine: {
      const double last = schedule.cosine().final_fraction();
      return last + (1.0 - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
    case job::Schedule::kLinear:
      return 1.0 + (schedule.linear().final_fraction() - 1.0) * progress;
    case job::Schedule::kConstant:
    case job::Schedule::KIND_NOT_SET:
      return 1.0;
  }
  return 1.0;
}

}  // namespace

Schedule::Schedule(const job::Schedule& schedule, double base_lr, std::int64_t total_steps)
    : schedule_(schedule), base_lr_(base_lr), total_steps_(total_steps) {}

double Schedule::learning_rate(std::int64_t applied_steps) const {
  const std::int64_t warmup = warmup_of(schedule_);
  if (applied_steps < warmup) return base_lr_ * static_cast<double>(applied_steps + 1) / static_cast<double>(warmup);
  const double length = static_cast<double>(std::max<std::int64_t>(total_steps_ - warmup, 1));
  const double progress = std::min(static_cast<double>(applied_steps - warmup) / length, 1.0);
  return base_lr_ * factor(schedule_, applied_steps, progress);
}

std::vector<float> Schedule::table() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (total_steps_ > kMost) {
    throw UsageError("train.steps: " + std::to_string(total_steps_) + " are more than a GPU's table of learning rates",
                     "Train at most " + std::to_string(kMost) + " steps, then resume with more.");
  }
  std::vector<float> rates;
  for (std::int64_t step = 0; step < std::max<std::int64_t>(total_steps_, 1); ++step) {
    rates.push_back(static_cast<float>(learning_rate(step)));
  }
  return rates;
}

}  // namespace lockstep::optim
