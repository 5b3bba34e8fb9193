// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/launch.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "comm/group/launch_environment.h"
#include "comm/group/network_choice.h"
#include "comm/group/versions.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/hosts_examination.h"
#include "launcher/hosts/marked_processes.h"
#include "launcher/supervisor/error_block.h"
#include "launcher/supervisor/host_calls.h"
#include "launcher/supervisor/mpirun.h"
#include "launcher/supervisor/restart_pause.h"
#include "launcher/supervisor/scratch_directory.h"
#include "launcher/supervisor/supervisor.h"
#include "runtime/base/host_name.h"
#include "runtime/base/open_files.h"
#include "runtime/base/program_search.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/record/write_stderr.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

/// Measured with Open MPI 4.1: it crashes, and its ranks wait, where it may have fewer.
constexpr std::size_t kFilesOfMpirun = 30;
constexpr std::size_t kFilesOfARank = 5;
constexpr std::size_t kFilesOfAHost = 4;

int ranks_to_start(const LaunchOptions& options) {
  if (options.hosts.empty()) return options.nproc == 0 ? 1 : options.nproc;
  const int places = ranks_on(options.hosts);
  if (options.nproc > places) {
    throw UsageError(fmt::format("--nproc {} asks for more ranks than --hosts {} has places: {}", options.nproc,
                                 options.hosts, places),
                     "Give the hosts more ranks, as in --hosts a:4,b:4.");
  }
  return options.nproc == 0 ? places : options.nproc;
}

void require_mpi(int ranks) {
  if (!comm::mpi_version().empty()) return;
  throw EnvironmentError(
      "--nproc, --hosts and --max-restarts start ranks through MPI, which this build does not have",
      "Start them with torchrun --nproc-per-node " + std::to_string(ranks) +
          " --no-python lockstep ..., or build where MPI is installed (Debian: libopenmpi-dev openmpi-bin).");
}

/// By which the daemons that mpirun starts on other hosts are known there as this process's.
const std::string& mark() {
  static const std::string kMark = fmt::format("lockstep-{}-{}-{}", host_name(), getpid(),
                                               std::chrono::system_clock::now().time_since_epoch().count());
  return kMark;
}

Outcome start(int ranks, const LaunchOptions& options, const RankCommand& command, int restart,
              const SignalInbox& inbox) {
  ScratchDirectory scratch;
  const fs::path board_file = scratch.path() / "status";
  const train::StatusBoard board = train::StatusBoard::create(board_file, ranks);
  std::map<std::string, std::string> variables{
      {"LOCKSTEP_STATUS_BOARD", board_file.string()},
      {"LOCKSTEP_RESTART_COUNT", std::to_string(restart)},
      // The ranks' stdout leads to mpirun; whether a person looks at ours, and through what, is known here.
      {"LOCKSTEP_PROGRESS", train::Terminal::shows_live_line(stdout) ? "bar" : "lines"},
      {"LOCKSTEP_COLUMNS", std::to_string(train::terminal_columns(train::StdoutRelay::descriptor()))}};
  if (options.hosts.empty() && scratch.in_memory()) {
    // Open MPI's own files, 4 MB a rank, lie here: they are removed as soon as all ranks have mapped them. The next
    // start removes those of a start that was killed.
    for (const char* name : {"OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory",
                             "PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_btl_sm_backing_directory"}) {
      variables.emplace(name, scratch.path().string());
    }
  }
  ChildCommand mpirun = mpirun_command(ranks, options.hosts, command.arguments(restart), variables);
  if (!options.hosts.empty()) {
    // Of no meaning to them; but mpirun writes its settings into the command line of its daemons.
    for (const char* name : {"OMPI_MCA_lockstep_start", "PRTE_MCA_lockstep_start"}) mpirun.environment[name] = mark();
  }
  return Supervisor(mpirun, board, inbox,
                    {.one_machine = options.hosts.empty(),
                     .saves_on_request = command.saves_on_request,
                     .output = command.output,
                     .timeout = command.timeout,
                     .joined = [&scratch] { scratch.remove(); },
                     .hosts = other_hosts(options.hosts),
                     .ranks_here = options.hosts.empty() || ranks_here(options.hosts) > 0})
      .run();
}

Outcome try_to_start(int ranks, const LaunchOptions& options, const RankCommand& command, int restart,
                     const SignalInbox& inbox) {
  try {
    return start(ranks, options, command, restart, inbox);
  } catch (const Error& error) {
    return {.code = error.code(), .error = error};
  }
}

/// Ranks that never found each other do not know why; the hosts, tried from here, may tell.
void explain_start(const LaunchOptions& options, const Outcome& outcome) {
  if (options.hosts.empty() || outcome.joined || outcome.code != ExitCode::kPeerLost || outcome.stop_requested) return;
  try {
    kill_marked_on(other_hosts(options.hosts), mark());
    const std::string findings = findings_text(examine_hosts(host_names(options.hosts)));
    if (!findings.empty()) spdlog::warn("the hosts, tried from here, lack what ranks need\n{}", findings);
  } catch (const std::exception& error) {
    // The outcome is what counts.
    spdlog::warn("the hosts could not be tried from here: {}", error.what());
  }
}

/// From here on a request to stop comes too late: the job is over, and ends as what it is.
void ignore_requests() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) std::signal(number, SIG_IGN);
}

/// Waits, and returns whether no request to stop has come meanwhile.
bool pass(std::chrono::milliseconds pause, const SignalInbox& inbox) {
  const auto end = std::chrono::steady_clock::now() + pause;
  for (;;) {
    while (const int signal = inbox.take()) {
      if (signal != SIGCHLD && signal != SIGWINCH) return false;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    pollfd watched{inbox.descriptor(), POLLIN, 0};
    poll(&watched, 1, static_cast<int>(left.count()));
  }
}

/// Waits for hosts that answered before, and returns whether no request to stop has come meanwhile. mpirun tells of one
/// that still does not answer after all.
bool wait_for_hosts(const std::set<std::string>& hosts, const SignalInbox& inbox) {
  const auto ssh = hosts.empty() ? std::nullopt : find_program("ssh");
  if (!ssh) return true;
  bool goes_on = true;
  call_hosts(*ssh, {hosts.begin(), hosts.end()},
             [&](std::chrono::milliseconds pause) { return goes_on = pass(pause, inbox); });
  return goes_on;
}

}  // namespace

int rank_count(const LaunchOptions& options) {
  return must_start_ranks(options) ? ranks_to_start(options) : comm::launch_environment().size;
}

bool must_start_ranks(const LaunchOptions& options) {
  comm::chosen_interfaces();
  const comm::LaunchEnvironment environment = comm::launch_environment();
  if (environment.launcher == comm::LaunchEnvironment::Launcher::kNone) {
    return options.max_restarts > 0 || ranks_to_start(options) > 1 || !options.hosts.empty();
  }
  const std::string joins =
      fmt::format("this process was itself started as rank {} of {}", environment.rank, environment.size);
  if (options.nproc != 0 && options.nproc != environment.size) {
    throw UsageError(fmt::format("--nproc {}: {}", options.nproc, joins),
                     "Leave --nproc away under mpirun, srun or torchrun.");
  }
  if (!options.hosts.empty() || options.max_restarts > 0) {
    throw UsageError("--hosts and --max-restarts are for the process that starts the ranks, but " + joins,
                     "Leave them away under mpirun, srun or torchrun.");
  }
  return false;
}

ExitCode launch(const LaunchOptions& options, const RankCommand& command) {
  const int ranks = ranks_to_start(options);
  require_mpi(ranks);
  const int here = options.hosts.empty() ? ranks : ranks_here(options.hosts);
  const std::size_t elsewhere = other_hosts(options.hosts).size();
  allow_open_files(
      kFilesOfMpirun + kFilesOfARank * static_cast<std::size_t>(here) + kFilesOfAHost * elsewhere,
      fmt::format("mpirun and {} ranks", here) + (elsewhere == 0 ? "" : fmt::format(" and {} other hosts", elsewhere)),
      ", or start fewer ranks here.");
  const SignalInbox inbox;
  RestartPause pauses;
  std::set<std::string> hosts;  // that ssh has led to
  for (int restart = 0;; ++restart) {
    const auto since = std::chrono::system_clock::now();
    const Outcome outcome = try_to_start(ranks, options, command, restart, inbox);
    if (command.ended) command.ended(outcome, restart, since);
    explain_start(options, outcome);
    const bool again = outcome.code == ExitCode::kPeerLost && !outcome.stop_requested && restart < options.max_restarts;
    if (!again) {
      ignore_requests();
      if (options.verbose && !outcome.mpirun_said.empty())
        train::write_stderr(outcome.mpirun_said, train::Words::kLast);
      if (outcome.error) throw *outcome.error;
      return outcome.code;
    }
    if (outcome.error) print_error(*outcome.error);
    const std::chrono::seconds pause = pauses.after(outcome.step);
    spdlog::warn("starting the ranks again{}: restart {} of {}",
                 pause.count() > 0 ? fmt::format(" in {} s", pause.count()) : "", restart + 1, options.max_restarts);
    hosts.insert(outcome.hosts.begin(), outcome.hosts.end());
    if (pass(pause, inbox) && wait_for_hosts(hosts, inbox)) continue;
    const Error stopped(ExitCode::kPreempted, "stopped, as asked, before the ranks were started again",
                        "Run the same command again; a training run resumes from its newest checkpoint.");
    if (command.ended) {
      command.ended({.code = ExitCode::kPreempted, .error = stopped, .step = outcome.step, .stop_requested = true},
                    restart, std::chrono::system_clock::now());
    }
    throw stopped;
  }
}

}  // namespace lockstep::launcher
