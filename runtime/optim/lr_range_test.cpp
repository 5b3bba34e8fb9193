// SPDX-License-Identifier: Apache-2.0
#include "runtime/optim/lr_range_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::optim {

namespace {

constexpr double kLeastFall = 0.01;  ///< as a share of the loss
/// A fall of so many median differences is no chance: of losses that differ by their batches alone, the running mean's
/// highest and lowest value are about one apart.
constexpr double kLeastDifferences = 2;

double median_difference(const std::vector<LrRangeTest::Point>& points) {
  std::vector<double> differences{0};
  for (std::size_t i = 1; i < points.size(); ++i) {
    differences.push_back(std::abs(points[i].loss - points[i - 1].loss));
  }
  const auto middle = differences.begin() + std::ssize(differences) / 2;
  std::ranges::nth_element(differences, middle);
  return *middle;
}

}  // namespace

FieldProblems problems_of(const LrRangeTestOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (checks.problems().empty()) checks.check(options.to > options.from, "to", "> from", options.to, {"from"});
  return checks.problems();
}

LrRangeTest::LrRangeTest(const LrRangeTestOptions& options) : options_(options) {
  require_none(problems_of(options), "optim::LrRangeTest");
}

double LrRangeTest::rate() const {
  if (done()) throw UsageError("the learning rate range test is done: " + reason_of(*this));
  const double share = static_cast<double>(points_.size()) / static_cast<double>(options_.steps - 1);
  return options_.from * std::pow(options_.to / options_.from, share);
}

LrRangeTest::End LrRangeTest::end() const {
  if (!done()) throw UsageError("the learning rate range test is not done", "Add losses until done().");
  return *end_;
}

void LrRangeTest::add(double loss) {
  const double at = rate();
  if (!std::isfinite(loss)) return end_not_finite();
  mean_ = options_.smoothing * mean_ + (1 - options_.smoothing) * loss;
  weight_ = options_.smoothing * weight_ + (1 - options_.smoothing);
  const double smoothed = mean_ / weight_;
  points_.push_back({at, loss, smoothed});
  lowest_ = std::min(lowest_, smoothed);
  // Written so that it holds for losses below 0, too.
  if (smoothed - lowest_ > (options_.stop_factor - 1) * std::abs(lowest_)) {
    end_ = End::kGrown;
  } else if (std::ssize(points_) == options_.steps) {
    end_ = End::kAllSteps;
  }
}

std::size_t LrRangeTest::lowest_index() const {
  const std::size_t first = first_considered();
  if (points_.size() > first) {
    const auto from = points_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto lowest = std::ranges::min_element(from, points_.end(), {}, &Point::smoothed);
    const double fall = from->smoothed - lowest->smoothed;
    const double least =
        std::max(kLeastFall * std::abs(from->smoothed), kLeastDifferences * median_difference(points_));
    if (fall > least) {
      return static_cast<std::size_t>(lowest - points_.begin());
    }
  }
  throw NumericsError(fmt::format("the loss does not fall between the learning rates {:.3g} and {:.3g}: {}",
                                  options_.from, points_.empty() ? options_.from : points_.back().rate,
                                  done() ? reason_of(*this) : "the test is not done"),
                      "Begin with a lower rate, or take more steps; a model that learns at no rate has another error: "
                      "look at its data and its loss.");
}

const LrRangeTest::Point& LrRangeTest::lowest_loss() const { return points_[lowest_index()]; }

const LrRangeTest::Point& LrRangeTest::steepest() const {
  const std::size_t last = lowest_index();
  std::size_t best = last;
  double slope = 0;
  for (std::size_t i = std::max<std::size_t>(first_considered(), 1); i <= last && i + 1 < points_.size(); ++i) {
    // Neighbours are equally far apart in the logarithm of the rate.
    const double here = points_[i + 1].smoothed - points_[i - 1].smoothed;
    if (here < slope) {
      slope = here;
      best = i;
    }
  }
  return points_[best];
}

std::string reason_of(const LrRangeTest& test) {
  switch (test.end()) {
    case LrRangeTest::End::kAllSteps:
      return "all steps are done";
    case LrRangeTest::End::kGrown:
      return fmt::format("the smoothed loss is above {:g} times its lowest value", test.options().stop_factor);
    case LrRangeTest::End::kNotFinite:
      return "the loss is no longer finite";
  }
  return {};
}

}  // namespace lockstep::optim
