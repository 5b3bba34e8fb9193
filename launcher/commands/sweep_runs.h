// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands/sweep_trials.h"
#include "launcher/supervisor/signal_inbox.h"
#include "runtime/base/error.h"
#include "runtime/train/history/run_record.h"

namespace lockstep::launcher {

/// How a sweep trains its runs.
struct SweepRuns {
  std::string job;
  std::vector<std::string> overrides;
  std::filesystem::path folder;
  std::string device = "auto";
  int jobs = 1;
};

/// Where a trial is trained.
std::filesystem::path directory_of(const SweepRuns& sweep, const Trial& trial);

/// Whether its numbers went wrong, which they would again.
bool went_wrong(const train::RunRecord& run);
/// Whether nothing is left to train: it is done, or its numbers went wrong.
bool has_ended(const std::filesystem::path& run);

/// Trains the trials, `jobs` at a time, each as a process on cores, and on a GPU, of its own, from where it stopped, to
/// its end or until this step. What it prints goes to DIRECTORY.log. `on_end` is told of each end. A request to stop is
/// handed on: all save, and the result is kPreempted. Otherwise the first exit code of a run that failed for another
/// reason than its numbers, or kDone.
ExitCode train_trials(const SweepRuns& sweep, const std::vector<Trial>& trials, std::optional<std::uint64_t> until,
                      const SignalInbox& inbox, const std::function<void(const Trial&, int exit_code)>& on_end);

}  // namespace lockstep::launcher
