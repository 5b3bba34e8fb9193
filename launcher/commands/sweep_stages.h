// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "launcher/commands/halving.h"
#include "launcher/commands/sweep_runs.h"
#include "launcher/commands/sweep_trials.h"
#include "runtime/base/error.h"

namespace lockstep::launcher {

/// Trains the trials from rung to rung, where those that `halving` chooses go on, and these to their end; without rungs
/// all of them. Says how each ended, and who goes on. Whatever was trained before is not trained again: interrupted and
/// called again, it chooses alike. Returns as train_trials() does; a rung to which not all came decides nothing, and
/// ends the sweep with that run's exit code. Throws NumericsError where no run has a number for the metric.
ExitCode train_all(const SweepRuns& runs, const Halving& halving, const std::vector<std::uint64_t>& rungs,
                   std::vector<Trial> trials);

}  // namespace lockstep::launcher
