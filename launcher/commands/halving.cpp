// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/halving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "launcher/commands/sweep_runs.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/history/evaluations.h"
#include "runtime/train/history/run_record.h"
#include "runtime/train/plan.h"
#include "runtime/train/record/eval_result.h"

namespace lockstep::launcher {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

std::uint64_t share_of(std::uint64_t runs, std::uint64_t factor) { return (runs + factor - 1) / factor; }

void require_metric(const std::string& metric, const train::Plan& plan) {
  train::require_sound(plan);
  if (plan.metrics.empty()) {
    throw UsageError("--halving " + metric + ": the job names no evaluation data",
                     "Add data { eval { ... } }, or data { eval_share: 0.1 }.");
  }
  if (std::ranges::find(plan.metrics, metric) != plan.metrics.end()) return;
  throw UsageError("--halving " + metric + ": is no metric of this job's evaluation; there are " +
                   name_list(metric, plan.metrics));
}

void require_evaluations(const Halving& halving, const job::Job& job) {
  const std::uint32_t every = job.train().eval_every();
  if (every > 0 && halving.first_steps % every == 0) return;
  const std::string found = every == 0 ? "0: the job evaluates at its end alone" : std::to_string(every);
  throw UsageError(
      fmt::format("--first-steps {}: expected a multiple of train.eval_every, which is {}", halving.first_steps, found),
      "Runs are compared by their evaluations: --set train.eval_every=N has them evaluate every N steps.");
}

void require_choices(const Halving& halving, const std::vector<std::uint64_t>& rungs, std::size_t runs) {
  std::uint64_t left = runs;
  for (const std::uint64_t rung : rungs) {
    if (left < 2) {
      throw UsageError(fmt::format("--halving: of {} run{} 1 comes to the rung at step {}, where there is nothing to "
                                   "choose; the rungs are at steps {}",
                                   runs, runs == 1 ? "" : "s", rung, fmt::join(rungs, ", ")),
                       "Raise --first-steps, or vary more.");
    }
    left = share_of(left, halving.factor);
  }
}

}  // namespace

std::vector<std::uint64_t> rungs_of(const Halving& halving, std::uint64_t steps) {
  std::vector<std::uint64_t> rungs;
  for (std::uint64_t rung = halving.first_steps; rung < steps; rung *= halving.factor) {
    rungs.push_back(rung);
    if (rung > steps / halving.factor) break;  // before it overflows
  }
  return rungs;
}

std::vector<std::uint64_t> require_rungs(const Halving& halving, std::span<const job::Job> jobs) {
  if (halving.metric.empty()) return {};
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  std::set<std::string> seen;
  for (const job::Job& job : jobs) {
    // The metrics and the steps of an epoch follow from these: data that all runs share are looked at once.
    const std::string parts = fmt::format("{}\n{}\n{}", job.data().SerializeAsString(), job.train().SerializeAsString(),
                                          job.model().SerializeAsString());
    if (!seen.insert(parts).second) continue;
    const train::Plan plan = train::plan(job, {});
    require_metric(halving.metric, plan);
    require_evaluations(halving, job);
    steps = std::min<std::uint64_t>(steps, train::with_steps(job, plan.steps_per_epoch).train().steps());
  }
  std::vector<std::uint64_t> rungs = rungs_of(halving, steps);
  if (rungs.empty()) {
    throw UsageError(
        fmt::format("--first-steps {}: expected fewer than the {} steps of a run", halving.first_steps, steps));
  }
  require_choices(halving, rungs, jobs.size());
  return rungs;
}

std::optional<double> value_at(const std::filesystem::path& run, const std::string& metric, std::uint64_t rung) {
  std::error_code hidden;
  if (!std::filesystem::exists(run, hidden)) return std::nullopt;
  const auto values = train::evaluations_of(run, metric);
  const auto after = values.upper_bound(rung);
  const bool has_any = after != values.begin();
  if (has_any && std::prev(after)->first == rung) return std::prev(after)->second;
  const train::RunRecord record = train::read_run(run);
  if (went_wrong(record)) return kNoValue;
  if (record.status != train::RunStatus::kDone && record.step <= rung) return std::nullopt;
  return has_any ? std::prev(after)->second : kNoValue;
}

std::vector<std::size_t> going_on(std::span<const double> values, const Halving& halving) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](std::size_t i) { return std::isnan(values[i]); });
  const double sign = train::is_better_lower(halving.metric) ? 1.0 : -1.0;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return sign * values[i]; });
  order.resize(std::min<std::size_t>(order.size(), share_of(values.size(), halving.factor)));
  return order;
}

}  // namespace lockstep::launcher
