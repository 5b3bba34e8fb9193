// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/run_directory.h"
#include "launcher/hosts/host_list.h"
#include "launcher/supervisor/error_block.h"
#include "launcher/supervisor/launch.h"
#include "runtime/job/job.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/record/output_writer.h"
#include "runtime/train/record/restarts.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/stall_watch.h"
#include "runtime/train/record/status_board.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/step_trace.h"
#include "runtime/train/train.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

struct TrainCommand {
  JobOptions job;
  LaunchOptions launch;
  std::string run_dir;
  std::string resume = "auto";
  std::string trace;
  std::optional<std::uint64_t> until;
  train::TrainOutput output;
};

std::vector<std::string> rank_arguments(const TrainCommand& command, const std::string& resume) {
  std::vector<std::string> arguments{"train"};
  for (const std::string& argument : command.job.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--resume", resume, "--device", command.launch.device});
  if (!command.run_dir.empty()) arguments.insert(arguments.end(), {"--run-dir", command.run_dir});
  if (!command.trace.empty()) arguments.insert(arguments.end(), {"--trace", command.trace});
  if (command.until) arguments.insert(arguments.end(), {"--until", std::to_string(*command.until)});
  if (command.output.quiet) arguments.emplace_back("--quiet");
  if (command.output.json) arguments.emplace_back("--json");
  if (!command.output.on_event.empty()) arguments.insert(arguments.end(), {"--on-event", command.output.on_event});
  return arguments;
}

/// How many timeouts of a collective a call on a checkpoint may take: with the default half an hour, in which a slow
/// disk syncs a large one.
constexpr int kStallTimeouts = 30;
constexpr std::chrono::milliseconds kRecordTime{3000};

/// Does so without waiting for a disk that does not answer.
void record_in_time(std::function<void()> record) {
  try {
    train::OutputWriter writer([](const std::string&) {});
    writer.perform(std::move(record), kRecordTime);
  } catch (const std::exception&) {
    // There is an error already that the user has to hear of.
  }
}

/// Whether the run directory here is the one that rank 0, on another host, writes: it has written the job since then.
bool is_rank_zeros(const fs::path& run_dir, fs::file_time_type since) {
  std::error_code none;
  const fs::file_time_type written = fs::last_write_time(run_dir / "job.pbtxt", none);
  return !none && written >= since;
}

/// Records how the ranks ended, where no rank could: it was killed, or never came to train.
void record(const Outcome& outcome, const fs::path& run_dir, int restart, std::chrono::system_clock::time_point since,
            bool echo) {
  if (outcome.code == ExitCode::kDone) return;
  const std::string how = "the ranks ended with exit code " + std::to_string(static_cast<int>(outcome.code));
  const Error error = outcome.error.value_or(Error(outcome.code, outcome.code == ExitCode::kPreempted ? "" : how));
  train::RunEnd end = train::end_of(error, outcome.step, outcome.where, restart);
  end.is_guess = !outcome.error;
  end.mpirun_said = outcome.mpirun_said;
  record_in_time([=] { train::record_end_from_outside(run_dir, end, since, echo); });
}

/// A checkpoint's call that does not return ends this rank: nothing else can wake it.
train::StallWatch stall_watch(const train::TrainOptions& options) {
  const auto end_run = [options](const Error& error) {
    const std::uint64_t step = *options.reached;
    const std::string where = "rank " + std::to_string(environment_or_lone().rank) + ", " + train::place_at(step);
    const train::RunEnd end = train::end_of(error, step, where, train::restart_count());
    record_in_time([=] { train::record_end(options.run_dir, end, options.process_start); });
    end_rank(error);
  };
  const auto where = [reached = options.reached] { return train::place_at(*reached); };
  return {kStallTimeouts * timeout_of(options.job.comm()), where, end_run};
}

ExitCode start_ranks(const TrainCommand& command, std::chrono::system_clock::time_point process_start) {
  // Before anything is started: a wrong job is one error, not one a rank. Warnings are rank 0's to give.
  const job::Checked checked = job::load_checked(command.job.job, command.job.overrides);
  const fs::path run_dir = run_directory(command.run_dir, checked.job);
  // Rank 0's host may have a run directory of its own, and this one another run's.
  const bool writes_here = has_rank_zero_here(command.launch.hosts);
  try {
    train::require_sound(plan_of(checked, command.launch, run_dir));
  } catch (const Error& error) {
    if (writes_here) train::record_early_failure(run_dir, error, process_start, command.output.json);
    throw;
  }
  if (writes_here) {
    const train::StallWatch watch(
        kStallTimeouts * timeout_of(checked.job.comm()), [] { return train::place_at(0); }, end_rank);
    make_run_directory(run_dir);
  }
  const auto begin = fs::file_time_type::clock::now();
  const auto arguments = [&](int restart) {
    // The checkpoint that the lost ranks saved is newer than the one that the user named.
    const bool saved = restart > 0 && saved_since(run_dir, begin);
    return rank_arguments(command, saved ? "auto" : command.resume);
  };
  const auto ended = [&](const Outcome& outcome, int restart, std::chrono::system_clock::time_point since) {
    if (writes_here || is_rank_zeros(run_dir, begin)) record(outcome, run_dir, restart, since, command.output.json);
  };
  return launch(command.launch, {.arguments = arguments,
                                 .ended = ended,
                                 .saves_on_request = true,
                                 .output = command.output,
                                 .timeout = timeout_of(checked.job.comm())});
}

void warn_of_loss(const std::string& loss) { spdlog::warn(loss); }

// The answer to a request to stop that comes while training does not listen.
std::atomic<std::uint64_t> step_reached{0};
constexpr int kNotYet = -1;
std::atomic<int> code_of_run{kNotYet};  ///< once its last words are written
static_assert(decltype(step_reached)::is_always_lock_free && decltype(code_of_run)::is_always_lock_free);

void on_request(int) {
  // Before the first step there is nothing to save.
  if (step_reached == 0) _exit(static_cast<int>(ExitCode::kPreempted));
  // Ignored until the run has written its last lines; then it ends the process with the exit code of the run.
  if (code_of_run != kNotYet) _exit(code_of_run);
}

void listen_to(std::initializer_list<int> signals) {
  for (const int number : signals) {
    // nohup's wish holds.
    const auto previous = std::signal(number, on_request);
    if (number == SIGHUP && previous == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  }
}

/// For training to set. No copy owns it: a request may come when all are gone.
std::shared_ptr<std::atomic<std::uint64_t>> reached() { return {std::shared_ptr<void>(), &step_reached}; }

/// Its destructor notes that the last words are written. The rank still has to leave the others, and may hang there: a
/// request ends it.
struct LastWords {
  ~LastWords() {
    if (!supervised) code_of_run = static_cast<int>(code);
  }
  bool supervised;                       ///< our launcher ends it where it hangs
  ExitCode code = ExitCode::kPreempted;  ///< also where an error ends the run, which tells of itself
};

ExitCode run(const TrainCommand& command) {
  const auto process_start = std::chrono::system_clock::now();
  listen_to({SIGTERM, SIGINT, SIGHUP});
  command.launch.require_device();
  std::optional<train::TracedSteps> trace;
  if (!command.trace.empty()) trace = train::traced_steps(command.trace);
  if (must_start_ranks(command.launch)) {
    const train::StdoutRelay relay(warn_of_loss);
    return start_ranks(command, process_start);
  }
  listen_to({SIGUSR1});  // from srun, or a bare mpirun
  return run_rank(command.job, command.launch, [&](comm::World& world, const job::Checked& checked, Device device) {
    LastWords last_words{.supervised = train::StatusBoard::from_environment().ranks() > 0};
    // The output of ranks that our launcher has started is its to pass on.
    std::optional<train::StdoutRelay> relay;
    if (!last_words.supervised) relay.emplace(warn_of_loss);
    // A build for GPUs that finds none says why, and trains.
    const bool tells = world.rank() == 0 && !command.output.quiet;
    if (command.launch.device == "auto" && device == kCpu && tells && !gpu::runtime_version().empty()) {
      train::put(command.output.json ? stderr : stdout, "training on the CPU: " + gpu::why_none() + "\n");
    }
    const fs::path run_dir = run_directory(command.run_dir, checked.job);
    train::TrainOptions options{checked.job, run_dir,        command.resume,    process_start,
                                device,      command.output, checked.locations, reached()};
    options.trace = trace;
    options.until = command.until;
    const train::StallWatch watch = stall_watch(options);
    return last_words.code = train::train(world, options);
  });
}

}  // namespace

void add_train(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<TrainCommand>();
  CLI::App& train = *app.add_subcommand("train", "train a job");
  command->job.add_to(train);
  command->launch.add_to(train, true);
  add_run_dir(train, command->run_dir);
  train.add_option("--resume", command->resume, "auto: from the run's newest whole checkpoint; never; or a checkpoint")
      ->capture_default_str()
      ->type_name("auto|never|CHECKPOINT")
      ->check(not_empty());
  train
      .add_option("--trace", command->trace,
                  "write what all ranks do in these steps, for Perfetto, into the run directory")
      ->type_name("FROM:TO")
      ->check(not_empty());
  train.add_option("--until", command->until, "stop behind this step, saved, as on a signal: exit code 75")
      ->type_name("STEP")
      ->check(CLI::PositiveNumber);
  train.add_flag("--quiet", command->output.quiet, "print errors and the result alone");
  train.add_flag("--json", command->output.json, "print the lines of metrics.jsonl to stdout, all else to stderr");
  train
      .add_option("--on-event", command->output.on_event,
                  "a command that gets each line of metrics.jsonl on stdin; rank 0 starts it by the shell")
      ->type_name("COMMAND")
      ->check(not_empty());
  train.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
