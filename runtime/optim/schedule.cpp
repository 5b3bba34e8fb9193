// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::optim {

namespace {

/// The factor after warm-up; `progress` runs from 0 at its end to 1 at the last step.
double factor(const ConstantSchedule&, std::int64_t, double) { return 1.0; }

double factor(const StepSchedule& step, std::int64_t applied_steps, double) {
  return std::pow(step.gamma, std::ranges::count_if(
                                  step.milestones, [&](std::int64_t milestone) { return milestone <= applied_steps; }));
}

double factor(const CosineSchedule& cosine, std::int64_t, double progress) {
  const double last = cosine.final_fraction;
  return last + (1.0 - last) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

/// set_reductions() has lowered the rate that this multiplies.
double factor(const ReduceOnPlateauSchedule&, std::int64_t, double) { return 1.0; }

double factor(const LinearSchedule& linear, std::int64_t, double progress) {
  return 1.0 + (linear.final_fraction - 1.0) * progress;
}

/// The factor of the rate behind so many of `total` steps.
double one_cycle(const OneCycleSchedule& cycle, std::int64_t applied_steps, std::int64_t total) {
  // The numbers of the steps with which the phases end, counted from 0, and the factors there.
  struct Phase {
    double end;
    double from;
    double to;
  };
  const double last_step = static_cast<double>(total) - 1, first = 1 / cycle.div_factor;
  const double last = first / cycle.final_div_factor, top = cycle.pct_start * static_cast<double>(total);
  const std::vector<Phase> phases =
      cycle.three_phase ? std::vector<Phase>{{top - 1, first, 1}, {2 * top - 2, 1, first}, {last_step, first, last}}
                        : std::vector<Phase>{{top - 1, first, 1}, {last_step, 1, last}};
  const double step = std::min(static_cast<double>(applied_steps), last_step);
  double begin = 0;
  for (const Phase& phase : phases) {
    if (step > phase.end && &phase != &phases.back()) {
      begin = phase.end;
      continue;
    }
    const double length = phase.end - begin;
    const double progress = length > 0 ? (step - begin) / length : 1.0;
    if (cycle.anneal_strategy == Anneal::kLinear) return phase.from + (phase.to - phase.from) * progress;
    return phase.to + (phase.from - phase.to) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  }
  return last;
}

void check_milestones(const StepSchedule& step, FieldChecks& checks) {
  const auto& milestones = step.milestones;
  if (milestones.empty()) return;
  if (!std::ranges::is_sorted(milestones, std::less_equal<>()) || milestones[0] <= 0) {
    checks.error("milestones", "must be > 0 and ascending");
  }
}

}  // namespace

FieldProblems problems_of(const ScheduleOptions& options) {
  FieldChecks checks;
  if (const auto* const registered = std::get_if<RegisteredOptions>(&options)) return problems_of(*registered);
  std::visit([&checks](const auto& kind) { check_fields(kind, checks); }, options);
  if (const auto* const step = std::get_if<StepSchedule>(&options)) check_milestones(*step, checks);
  return checks.problems();
}

Schedule::Schedule(ScheduleOptions options, double base_lr, std::int64_t total_steps)
    : options_(std::move(options)), base_lr_(base_lr), total_steps_(total_steps) {
  const auto name = std::visit([](const auto& kind) { return kind.kKind; }, options_);
  require_none(problems_of(options_), "schedule." + std::string(name));
  FieldChecks checks;
  checks.not_negative(base_lr, "base_lr");
  checks.not_negative(static_cast<double>(total_steps), "total_steps");
  require_none(checks.problems(), "optim::Schedule");
  if (const auto* const call = std::get_if<RegisteredOptions>(&options_)) function_ = make_registered_schedule(*call);
}

Schedule Schedule::of_function(ScheduleFunction factor, double base_lr, std::int64_t total_steps) {
  if (!factor) throw UsageError("optim::Schedule::of_function() is given no function");
  Schedule schedule(ConstantSchedule{}, base_lr, total_steps);
  schedule.function_ = std::move(factor);
  return schedule;
}

double Schedule::learning_rate(std::int64_t applied_steps) const {
  if (function_) return base_lr_ * function_(applied_steps);
  const auto rate = [&]<class Kind>(const Kind& kind) {
    if constexpr (std::same_as<Kind, OneCycleSchedule>) {
      return base_lr_ * one_cycle(kind, applied_steps, total_steps_);
    } else if constexpr (std::same_as<Kind, RegisteredOptions>) {
      return base_lr_ * function_(applied_steps);
    } else {
      const std::int64_t warmup = kind.warmup_steps;
      double lr = base_lr_;
      if constexpr (std::same_as<Kind, ReduceOnPlateauSchedule>) lr = reduced_rate(kind, lr, reductions_);
      if (applied_steps < warmup) {
        return lr * static_cast<double>(applied_steps + 1) / static_cast<double>(warmup);
      }
      const double length = static_cast<double>(std::max<std::int64_t>(total_steps_ - warmup, 1));
      const double progress = std::min(static_cast<double>(applied_steps - warmup) / length, 1.0);
      return lr * factor(kind, applied_steps, progress);
    }
  };
  return std::visit(rate, options_);
}

std::vector<float> Schedule::table() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (total_steps_ > kMost) {
    throw UsageError("a schedule of " + std::to_string(total_steps_) + " steps is too long for a GPU's table of rates",
                     "Train at most " + std::to_string(kMost) + " steps, then resume with more.");
  }
  std::vector<float> rates;
  for (std::int64_t step = 0; step < std::max<std::int64_t>(total_steps_, 1); ++step) {
    rates.push_back(static_cast<float>(learning_rate(step)));
  }
  return rates;
}

}  // namespace lockstep::optim
