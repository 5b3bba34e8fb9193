// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launcher/supervisor/launch_options.h"
#include "launcher/supervisor/supervisor.h"
#include "runtime/train/train.h"

namespace lockstep::launcher {

/// The program that the ranks run.
struct RankCommand {
  /// The arguments of this program, for a start and, from 1 on, for each restart.
  std::function<std::vector<std::string>(int restart)> arguments;
  /// Called at each end of the ranks, before it is reported; `since`: their start.
  std::function<void(const Outcome&, int restart, std::chrono::system_clock::time_point since)> ended = {};
  bool saves_on_request = false;
  train::TrainOutput output = {};
  std::chrono::milliseconds timeout{60'000};  ///< of a silent rank
};

/// How many ranks the options ask for, or there are where this process is one. Throws UsageError.
int rank_count(const LaunchOptions& options);

/// Whether this process has to start the ranks, rather than being one. Throws UsageError when it is one and the options
/// ask for other ranks than there are, and where this host lacks the interface that was named.
bool must_start_ranks(const LaunchOptions& options);

/// Starts the ranks and stays until they have ended, starting them again where one was lost and the options say so.
/// Throws the Error that no rank has reported.
ExitCode launch(const LaunchOptions& options, const RankCommand& command);

}  // namespace lockstep::launcher
