// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::optim {

// How a learning rate goes. Each begins with a warm-up: from lr / warmup_steps up to lr, linearly.

struct ConstantSchedule {
  std::int64_t warmup_steps = 0;  ///< >= 0

  static constexpr std::string_view kKind = "constant";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("warmup_steps", &ConstantSchedule::warmup_steps, kNotNegative));
  }
  bool operator==(const ConstantSchedule&) const = default;
};

struct StepSchedule {
  std::int64_t warmup_steps = 0;              ///< >= 0
  std::vector<std::int64_t> milestones = {};  ///< applied steps > 0, ascending; at least one
  double gamma = 0.1;                         ///< > 0: factor at each milestone

  static constexpr std::string_view kKind = "step";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("warmup_steps", &StepSchedule::warmup_steps, kNotNegative),
        option("milestones", &StepSchedule::milestones, Required{"the steps at which the rate falls, [1000, 2000]"}),
        option("gamma", &StepSchedule::gamma, kPositive));
  }
  bool operator==(const StepSchedule&) const = default;
};

struct CosineSchedule {
  std::int64_t warmup_steps = 0;  ///< >= 0
  double final_fraction = 0;      ///< >= 0: of lr, at the last step

  static constexpr std::string_view kKind = "cosine";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("warmup_steps", &CosineSchedule::warmup_steps, kNotNegative),
                      option("final_fraction", &CosineSchedule::final_fraction, kNotNegative));
  }
  bool operator==(const CosineSchedule&) const = default;
};

struct LinearSchedule {
  std::int64_t warmup_steps = 0;  ///< >= 0
  double final_fraction = 0;      ///< >= 0: of lr, at the last step

  static constexpr std::string_view kKind = "linear";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("warmup_steps", &LinearSchedule::warmup_steps, kNotNegative),
                      option("final_fraction", &LinearSchedule::final_fraction, kNotNegative));
  }
  bool operator==(const LinearSchedule&) const = default;
};

using ScheduleOptions = std::variant<ConstantSchedule, StepSchedule, CosineSchedule, LinearSchedule>;

/// What a Schedule refuses; empty where the options can be used.
FieldProblems problems_of(const ScheduleOptions& options);

/// The learning rate as a function of the applied steps: a skipped step does not advance it.
class Schedule {
 public:
  /// optim::Schedule(optim::CosineSchedule{.warmup_steps = 50}, 0.1, 600). `base_lr` is the rate after the warm-up;
  /// `total_steps` is where cosine and linear end. Throws FieldError for an option out of range, and unless
  /// both are >= 0.
  Schedule(ScheduleOptions options, double base_lr, std::int64_t total_steps);

  /// The rate of the step that follows `applied_steps` applied ones.
  double learning_rate(std::int64_t applied_steps) const;

  /// The rates of all steps, for Optimizer::set_learning_rates. Throws UsageError for more than 2^24 of them.
  std::vector<float> table() const;

 private:
  ScheduleOptions options_;
  double base_lr_;
  std::int64_t total_steps_;
};

}  // namespace lockstep::optim
