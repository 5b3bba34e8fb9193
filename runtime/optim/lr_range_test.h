// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::optim {

struct LrRangeTestOptions {
  double from = 1e-7;        ///< > 0: the first learning rate
  double to = 10;            ///< > from: the last one
  std::int64_t steps = 100;  ///< >= 20, from `from` to `to`: each rate is the same multiple of the one before
  double smoothing = 0.9;    ///< >= 0 and < 1: share of the losses' running mean that stays at each step
  double stop_factor = 4;    ///< > 1: the test ends where the smoothed loss is above so many times its lowest value

  static constexpr auto fields() {
    using Options = LrRangeTestOptions;
    return std::tuple(option("from", &Options::from, kPositive), option("to", &Options::to, kPositive),
                      option("steps", &Options::steps, Bound{">= 20", 20, false}),
                      option("smoothing", &Options::smoothing, kFraction),
                      option("stop_factor", &Options::stop_factor, Bound{"> 1", 1, true}));
  }
  bool operator==(const LrRangeTestOptions&) const = default;
};

/// The problems for which a LrRangeTest refuses the options; empty where they can be used.
FieldProblems problems_of(const LrRangeTestOptions& options);

/// The learning rate range test (Smith: arXiv 1506.01186), as the learning rate finders of fastai and Lightning: a
/// model trains while the rate rises geometrically, and its losses show which rates it learns with. For a loop:
///
///   while (!test.done()) {
///     optimizer->set_learning_rate(test.rate());
///     training.run(loader.next());
///     const step::StepOutcome outcome = training.outcome();
///     if (!outcome.skipped()) test.add(outcome.loss);  // a skipped step is taken again at its rate
///   }
///   double lr = test.suggestion();
class LrRangeTest {
 public:
  /// Throws FieldError for options that problems_of() names.
  explicit LrRangeTest(const LrRangeTestOptions& options = {});

  enum class End {
    kAllSteps,   ///< the last rate was tried
    kGrown,      ///< the smoothed loss has grown by the stop factor
    kNotFinite,  ///< a loss was inf or NaN, or end_not_finite() was called
  };
  /// A step: its rate, its loss before the weights changed, and the losses' running mean, without the bias to 0 that it
  /// has at first.
  struct Point {
    double rate;
    double loss;
    double smoothed;
  };

  bool done() const { return end_.has_value(); }
  /// The rate of the next step. Throws UsageError once the test is done.
  double rate() const;
  /// Takes in the loss of the step at rate(). One that is not finite ends the test, and is no point of it. Throws as
  /// rate().
  void add(double loss);
  /// Ends the test where no step can be taken: each one overflows.
  void end_not_finite() { end_ = End::kNotFinite; }

  const std::vector<Point>& points() const { return points_; }
  const LrRangeTestOptions& options() const { return options_; }
  /// Throws UsageError before the test is done.
  End end() const;

  /// The point of the steepest descent: of those up to the lowest smoothed loss, but for the first tenth of the steps,
  /// in which the mean has few losses, the one at which the smoothed loss falls fastest for the logarithm of the rate.
  /// The slope is that between the two neighbours. Throws NumericsError where the smoothed loss has not fallen behind
  /// that tenth: by 1 %, and by twice the median difference of two losses in a row, which batches make. There is no
  /// descent then.
  const Point& steepest() const;
  /// The point with the lowest smoothed loss behind the first tenth. Throws as steepest().
  const Point& lowest_loss() const;
  /// steepest().rate
  double suggestion() const { return steepest().rate; }

 private:
  std::size_t first_considered() const { return static_cast<std::size_t>(options_.steps / 10); }
  std::size_t lowest_index() const;

  LrRangeTestOptions options_;
  std::vector<Point> points_;
  double mean_ = 0;
  double weight_ = 0;                                        ///< of the losses in mean_; the rest is 0's
  double lowest_ = std::numeric_limits<double>::infinity();  ///< of the smoothed losses
  std::optional<End> end_;
};

/// "all steps are done", "the smoothed loss is above 4 times its lowest value", "the loss is no longer finite"
/// Throws UsageError before the test is done.
std::string reason_of(const LrRangeTest& test);

}  // namespace lockstep::optim
