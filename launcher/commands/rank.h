// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "comm/group/world.h"
#include "launcher/commands/options.h"
#include "launcher/supervisor/launch_options.h"
#include "runtime/job/job.h"

namespace lockstep::launcher {

/// The work of a rank, on its device.
using RankWork = std::function<ExitCode(comm::World&, const job::Checked&, Device)>;

/// comm.timeout_s
std::chrono::milliseconds timeout_of(const job::Comm& comm);

/// Runs this process as one rank, or as the only one: reads the job by `load`, joins the others, makes sure that they
/// have the same job, and works. Reports an error and ends the whole job with its exit code.
ExitCode run_rank(const std::function<job::Checked()>& load, const LaunchOptions& launch, const RankWork& work);
ExitCode run_rank(const JobOptions& options, const LaunchOptions& launch, const RankWork& work);

/// Reports the error and ends this rank at once, whatever its other threads do.
[[noreturn]] void end_rank(const Error& error);

}  // namespace lockstep::launcher
