// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::optim {

/// How much better than the best value a value has to be.
enum class ThresholdMode {
  kRelative,  ///< by a share of the best value: below best * (1 - threshold), or above best * (1 + threshold)
  kAbsolute,  ///< below best - threshold, or above best + threshold
};

/// Lowers the rate where a metric no longer improves. The options are those of PyTorch's ReduceLROnPlateau.
struct ReduceOnPlateauSchedule {
  std::int64_t warmup_steps = 0;     ///< >= 0
  std::string metric = "eval.loss";  ///< of a job's evaluations; class ReduceOnPlateau is told values instead
  double factor = 0.1;               ///< > 0 and < 1: of the rate, at each reduction
  std::int64_t patience = 10;        ///< >= 0: evaluations in a row without an improvement before the one that reduces
  double threshold = 1e-4;           ///< >= 0: a smaller improvement is none
  ThresholdMode threshold_mode = ThresholdMode::kRelative;
  std::int64_t cooldown = 0;  ///< >= 0: evaluations after a reduction that are not counted as bad
  double min_lr = 0;          ///< >= 0: no reduction goes below it
  double epsilon = 1e-8;      ///< >= 0: the rate stays where a reduction would change it by no more than this

  static constexpr std::string_view kKind = "reduce_on_plateau";  ///< its name in a job
  static constexpr auto fields() {
    using Options = ReduceOnPlateauSchedule;
    return std::tuple(
        option("warmup_steps", &Options::warmup_steps, kNotNegative), option("metric", &Options::metric),
        option("factor", &Options::factor, Bound{"> 0 and < 1", 0, true, 1, true}),
        option("patience", &Options::patience, kNotNegative), option("threshold", &Options::threshold, kNotNegative),
        option("threshold_mode", &Options::threshold_mode), option("cooldown", &Options::cooldown, kNotNegative),
        option("min_lr", &Options::min_lr, kNotNegative), option("epsilon", &Options::epsilon, kNotNegative));
  }
  bool operator==(const ReduceOnPlateauSchedule&) const = default;
};

/// The rate that `lr` becomes in so many reductions.
double reduced_rate(const ReduceOnPlateauSchedule& options, double lr, std::int64_t reductions);

/// Which of two values of a metric is the better one.
enum class Better { kLower, kHigher };

/// The state of a ReduceOnPlateau: save it beside a checkpoint.
struct PlateauState {
  double best;                       ///< inf, or -inf where higher is better, before the first value
  std::int64_t bad_evaluations = 0;  ///< in a row that were not better
  std::int64_t cooldown_left = 0;    ///< evaluations that are not counted as bad
  std::int64_t reductions = 0;
};

/// Lowers a learning rate where a metric no longer improves: PyTorch's ReduceLROnPlateau. For a loop of one's own:
/// `if (plateau.add(loss)) optimizer->set_learning_rate(plateau.learning_rate());`. Every rank has to give it the same
/// values. The warm-up is the Schedule's: Schedule::set_reductions().
class ReduceOnPlateau {
 public:
  /// `lr` is the rate before the first reduction. Throws FieldError for an option out of range, and unless lr >= 0.
  ReduceOnPlateau(ReduceOnPlateauSchedule options, double lr, Better better = Better::kLower);

  /// Takes in the metric's value in an evaluation. NaN is never an improvement. Whether the rate was reduced.
  bool add(double value);

  double learning_rate() const { return reduced_rate(options_, lr_, state_.reductions); }
  const ReduceOnPlateauSchedule& options() const { return options_; }

  /// The rate that it goes on with follows from the count of reductions and the options that this was made with.
  const PlateauState& state() const { return state_; }
  void load_state(const PlateauState& state) { state_ = state; }

 private:
  bool is_better(double value) const;
  bool reduce();

  ReduceOnPlateauSchedule options_;
  double lr_;
  Better better_;
  PlateauState state_;
};

}  // namespace lockstep::optim

namespace lockstep {

/// The modes that a job can name.
template <>
struct EnumNames<optim::ThresholdMode> {
  static constexpr std::array kNames{std::pair{optim::ThresholdMode::kRelative, std::string_view("RELATIVE")},
                                     std::pair{optim::ThresholdMode::kAbsolute, std::string_view("ABSOLUTE")}};
};

}  // namespace lockstep
