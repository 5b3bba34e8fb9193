// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/sweep_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "launcher/commands/write_out.h"
#include "launcher/supervisor/signal_inbox.h"
#include "runtime/train/history/run_record.h"

namespace lockstep::launcher {

namespace {

std::string end_text(const train::RunRecord& run, int code, std::optional<std::uint64_t> until) {
  const bool waits = until && code == static_cast<int>(ExitCode::kPreempted);
  std::string text = waits ? fmt::format("at step {}", run.step) : std::string(name_of(run.status));
  if (code != 0 && !waits) text += fmt::format(", exit code {}", code);
  if (run.best) text += fmt::format(", {} {:.4g} at step {}", run.best->metric, run.best->value, run.best->step);
  return text;
}

/// Trains `open`, those of the trials that have not come so far, and says of each how it ended.
ExitCode train_open(const SweepRuns& runs, const std::vector<Trial>& trials, const std::vector<Trial>& open,
                    std::optional<std::uint64_t> until, const SignalInbox& inbox) {
  std::size_t ended = trials.size() - open.size();
  return train_trials(runs, open, until, inbox, [&](const Trial& trial, int exit_code) {
    const train::RunRecord record = train::read_run(directory_of(runs, trial));
    write_out(fmt::format("{}/{}  {}: {}\n", ++ended, trials.size(), trial.name, end_text(record, exit_code, until)));
  });
}

std::vector<Trial> open_ones(const std::vector<Trial>& trials, const std::function<bool(const Trial&)>& has_come) {
  std::vector<Trial> open;
  std::ranges::copy_if(trials, std::back_inserter(open), std::not_fn(has_come));
  return open;
}

/// Trains the trials to a rung, and leaves those that go on. Where not all come there, nothing is decided, and the
/// result is not kDone.
ExitCode train_to_rung(const SweepRuns& runs, const Halving& halving, std::uint64_t rung, std::vector<Trial>& trials,
                       const SignalInbox& inbox) {
  const auto value = [&](const Trial& trial) { return value_at(directory_of(runs, trial), halving.metric, rung); };
  const auto has_come = [&](const Trial& trial) { return value(trial).has_value(); };
  const ExitCode code = train_open(runs, trials, open_ones(trials, has_come), rung, inbox);
  if (code == ExitCode::kPreempted) return code;
  std::vector<double> values;
  for (const Trial& trial : trials) {
    const std::optional<double> found = value(trial);
    // Somebody else stopped it, or it failed.
    if (!found) return code == ExitCode::kDone ? ExitCode::kPreempted : code;
    values.push_back(*found);
  }
  const std::vector<std::size_t> best = going_on(values, halving);
  if (best.empty()) {
    throw NumericsError(fmt::format("no run has a number for {} at step {}", halving.metric, rung),
                        "Look into the *.log files in " + runs.folder.string() + ".");
  }
  const auto told = [&](std::size_t i) { return fmt::format("{:.4g} ({})", values[i], trials[i].name); };
  const bool is_one = best.size() == 1;
  write_out(fmt::format("at step {} {} of {} runs {} on, by {} {}\n", rung, best.size(), trials.size(),
                        is_one ? "goes" : "go", halving.metric,
                        is_one ? told(best.front()) : "from " + told(best.front()) + " to " + told(best.back())));
  std::vector<Trial> left;
  for (const std::size_t i : best) left.push_back(trials[i]);
  trials = std::move(left);
  return ExitCode::kDone;
}

}  // namespace

ExitCode train_all(const SweepRuns& runs, const Halving& halving, const std::vector<std::uint64_t>& rungs,
                   std::vector<Trial> trials) {
  const SignalInbox inbox;
  for (const std::uint64_t rung : rungs) {
    const ExitCode code = train_to_rung(runs, halving, rung, trials, inbox);
    if (code != ExitCode::kDone) return code;
  }
  const auto is_over = [&](const Trial& trial) { return has_ended(directory_of(runs, trial)); };
  return train_open(runs, trials, open_ones(trials, is_over), std::nullopt, inbox);
}

}  // namespace lockstep::launcher
