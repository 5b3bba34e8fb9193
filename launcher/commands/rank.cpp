// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/rank.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "comm/group/launch_environment.h"
#include "launcher/commands/join_watch.h"
#include "launcher/supervisor/error_block.h"
#include "launcher/supervisor/openmp_settings.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/train/record/heartbeat.h"
#include "runtime/train/record/status_board.h"
#include "runtime/train/same_job.h"

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

comm::CommunicatorOptions communicator_options(const job::Job& job, Device device) {
  comm::CommunicatorOptions options;
  options.timeout = timeout_of(job.comm());
  options.shared_memory = job.comm().shared_memory();
  options.job = job.name();
  options.job_hash = job::hash(job);
  options.device = device;
  return options;
}

/// "on rank 0, in step 57, backward"; `entry` is the rank's on the status board, where there is one.
std::string place_of(const comm::LaunchEnvironment& environment, const StatusBoard::Entry& entry) {
  if (environment.size == 1) return "";
  const bool works = entry.phase >= RankPhase::kInit && entry.phase <= RankPhase::kEval;
  return "on rank " + std::to_string(environment.rank) + (works ? ", " + train::str(entry) : "");
}

/// One of several ranks that do not come out of MPI's start.
void end_unjoined(const Error& error) {
  give_way(error, false);
  end_rank(error);
}

enum class Stage { kJoins, kWorks, kEnds };
/// For whoever ends this process by exit(), without a word to us; one that is killed comes not there.
Stage stage = Stage::kJoins;

/// MPI does so where it cannot join the others; OpenMP where the system starts no more threads.
void note_an_end_by_a_library(const StatusBoard& board, int rank) {
  static StatusBoard own_board;
  static int own_rank;
  own_board = board;
  own_rank = rank;
  std::atexit([] {
    if (stage == Stage::kWorks) {
      end_rank(EnvironmentError("a library ended this rank, after words of its own",
                                "Where it lacked threads or memory: raise ulimit -u and -v or the control group's "
                                "pids.max, or use fewer ranks here or a lower OMP_NUM_THREADS."));
    }
    if (own_board.get(own_rank).phase == RankPhase::kJoin) own_board.set(own_rank, RankPhase::kNotJoined, 0);
  });
}

}  // namespace

std::chrono::milliseconds timeout_of(const job::Comm& comm) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(comm.timeout_s() * 1e3));
}

ExitCode run_rank(const JobOptions& options, const LaunchOptions& launch, const RankWork& work) {
  return run_rank([&options] { return job::load_checked(options.job, options.overrides); }, launch, work);
}

ExitCode run_rank(const std::function<job::Checked()>& load, const LaunchOptions& launch, const RankWork& work) {
  const comm::LaunchEnvironment environment = comm::launch_environment();
  settle_openmp(comm::own_cores(environment));
  const StatusBoard board = StatusBoard::from_environment();
  if (board.ranks() > 0) obey_supervisor();
  const auto set_phase = [&](RankPhase phase) { board.set(environment.rank, phase, board.get(environment.rank).step); };
  const auto set_end = [&](RankPhase phase, int code) {
    set_phase(phase);
    board.set_exit_code(environment.rank, code);
  };
  set_phase(RankPhase::kNone);
  const train::Heartbeat heartbeat(board, environment.rank);
  note_an_end_by_a_library(board, environment.rank);
  std::optional<comm::World> world;
  try {
    const job::Checked checked = load();
    const job::Job& job = checked.job;
    const Device device = launch.device_of(environment.local_rank);
    set_phase(RankPhase::kJoin);
    {
      std::optional<JoinWatch> watch;
      if (environment.size > 1) watch.emplace(JoinWatch::limit_for(timeout_of(job.comm())), end_unjoined);
      world.emplace(comm::World::from_environment(communicator_options(job, device)));
    }
    if (world->size() > 1) train::require_same_job(*world->communicator(), job);
    set_phase(RankPhase::kJoined);
    stage = Stage::kWorks;
    kernels::cpu::start_threads();
    const ExitCode code = work(*world, checked, device);
    stage = Stage::kEnds;
    // A call that hangs from here on is ended, since the rank is done.
    std::fflush(stdout);
    set_end(RankPhase::kDone, static_cast<int>(code));
    // The supervisor takes the code from the board. Where a rank ends with another than 0, mpirun ends the job, and
    // that of Open MPI 5 may do so before it has passed on the last output.
    return board.ranks() > 0 ? ExitCode::kDone : code;
  } catch (const std::exception& exception) {
    stage = Stage::kEnds;
    const Error error = as_error(exception);
    const std::string place = place_of(environment, board.get(environment.rank));
    // The supervisor looks for the rank that was lost among those that don't report an error of their own.
    if (error.code() != ExitCode::kPeerLost) set_phase(RankPhase::kFailed);
    give_way(error, world.has_value());
    set_end(RankPhase::kFailed, static_cast<int>(error.code()));
    print_error(error, place);
    if (world) world->abort(static_cast<int>(error.code()));
    return error.code();
  }
}

void end_rank(const Error& error) {
  const int rank = environment_or_lone().rank;
  const StatusBoard board = StatusBoard::from_environment();
  board.set(rank, RankPhase::kFailed, board.get(rank).step);
  board.set_exit_code(rank, static_cast<int>(error.code()));
  _exit(report(error));
}

}  // namespace lockstep::launcher
