// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/base/registered.h"
#include "runtime/optim/reduce_on_plateau.h"
#include "runtime/optim/registered_schedule.h"

namespace lockstep::optim {

// How a learning rate goes. All but OneCycleSchedule and registered ones begin with a warm-up: from lr / warmup_steps
// up to lr, linearly.

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

enum class Anneal { kCosine, kLinear };

/// Raises the rate to lr, then lowers it far below the first one (Smith, Topin: arXiv 1708.07120), as PyTorch's
/// OneCycleLR with the optimizer's lr for max_lr. It ends with the last step. The momentum stays.
struct OneCycleSchedule {
  double pct_start = 0.3;         ///< in [0, 1]: share of the steps in which the rate rises
  double div_factor = 25;         ///< > 0: the first rate is lr / div_factor
  double final_div_factor = 1e4;  ///< > 0: the last one is the first one / final_div_factor
  Anneal anneal_strategy = Anneal::kCosine;
  bool three_phase = false;  ///< it falls to the first rate as fast as it rose, and from there to the last one

  static constexpr std::string_view kKind = "one_cycle";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(option("pct_start", &OneCycleSchedule::pct_start, kZeroToOne),
                      option("div_factor", &OneCycleSchedule::div_factor, kPositive),
                      option("final_div_factor", &OneCycleSchedule::final_div_factor, kPositive),
                      option("anneal_strategy", &OneCycleSchedule::anneal_strategy),
                      option("three_phase", &OneCycleSchedule::three_phase));
  }
  bool operator==(const OneCycleSchedule&) const = default;
};

using ScheduleOptions = std::variant<ConstantSchedule, StepSchedule, CosineSchedule, LinearSchedule, OneCycleSchedule,
                                     ReduceOnPlateauSchedule, RegisteredOptions>;

/// The problems for which a Schedule refuses the options; empty where they can be used.
FieldProblems problems_of(const ScheduleOptions& options);

/// The learning rate as a function of the applied steps: a skipped step does not advance it. On a plateau it also
/// depends on the evaluations so far.
class Schedule {
 public:
  /// optim::Schedule(optim::CosineSchedule{.warmup_steps = 50}, 0.1, 600). `base_lr` is the rate after the warm-up;
  /// `total_steps` is where cosine, linear and one cycle end. Throws FieldError for an option out of range, and unless
  /// both are >= 0. Throws as make_registered_schedule() for one that the program has registered.
  Schedule(ScheduleOptions options, double base_lr, std::int64_t total_steps);
  /// A schedule of the program's own, as PyTorch's LambdaLR: base_lr * factor(applied steps). Throws UsageError for no
  /// function, and FieldError unless the numbers are >= 0.
  static Schedule of_function(ScheduleFunction factor, double base_lr, std::int64_t total_steps);

  /// How often a plateau has reduced the rate so far, which all later ones start from. Other kinds than
  /// ReduceOnPlateauSchedule go on as they are.
  void set_reductions(std::int64_t reductions) { reductions_ = reductions; }
  std::int64_t reductions() const { return reductions_; }

  /// The rate of the step that follows `applied_steps` applied ones.
  double learning_rate(std::int64_t applied_steps) const;

  /// The rates of all steps, for Optimizer::set_learning_rates. Throws UsageError for more than 2^24 of them.
  std::vector<float> table() const;

 private:
  ScheduleOptions options_;
  double base_lr_;
  std::int64_t total_steps_;
  std::int64_t reductions_ = 0;
  ScheduleFunction function_;  ///< in place of the options, where there is one
};

}  // namespace lockstep::optim

namespace lockstep {

/// The curves that a job can name.
template <>
struct EnumNames<optim::Anneal> {
  static constexpr std::array kNames{std::pair{optim::Anneal::kCosine, std::string_view("COSINE")},
                                     std::pair{optim::Anneal::kLinear, std::string_view("LINEAR")}};
};

}  // namespace lockstep
