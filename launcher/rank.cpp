// SPDX-License-Identifier: Apache-2.0
#include "launcher/rank.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "comm/group/launch_environment.h"
#include "launcher/error_block.h"
#include "launcher/openmp_settings.h"
#include "launcher/same_job.h"
#include "runtime/train/status_board.h"

namespace lockstep::launcher {

namespace {

using train::RankPhase;
using train::StatusBoard;

/// A rank must not outlive the mpirun that our supervisor watches, nor miss a beat when the supervisor asks too early
/// for a save.
void obey_supervisor() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGUSR1, SIG_IGN);
}

comm::CommunicatorOptions communicator_options(const job::Comm& comm, Device device) {
  comm::CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(comm.timeout_s() * 1e3));
  options.shared_memory = comm.shared_memory();
  options.device = device;
  return options;
}

}  // namespace

ExitCode run_rank(const JobOptions& options, const LaunchOptions& launch, const RankWork& work) {
  const comm::LaunchEnvironment environment = comm::launch_environment();
  settle_openmp(comm::own_cores(environment));
  const StatusBoard board = StatusBoard::from_environment();
  if (board.ranks() > 0) obey_supervisor();
  const auto set_phase = [&](RankPhase phase) { board.set(environment.rank, phase, board.get(environment.rank).step); };
  set_phase(RankPhase::kNone);
  std::optional<comm::World> world;
  try {
    const job::Checked checked = job::load_checked(options.job, options.overrides);
    const job::Job& job = checked.job;
    const Device device = launch.device_of(environment.local_rank);
    world.emplace(comm::World::from_environment(communicator_options(job.comm(), device)));
    if (world->size() > 1) require_same_job(*world->communicator(), job);
    const ExitCode code = work(*world, checked, device);
    set_phase(RankPhase::kDone);
    return code;
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    // The supervisor looks for the rank that was lost among those that don't report an error of their own.
    if (error.code() != ExitCode::kPeerLost) set_phase(RankPhase::kFailed);
    give_way(error, world.has_value());
    set_phase(RankPhase::kFailed);
    const int code = report(error);
    if (world) world->abort(code);
    return static_cast<ExitCode>(code);
  }
}

}  // namespace lockstep::launcher
