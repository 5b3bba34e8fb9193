// SPDX-License-Identifier: Apache-2.0
#include "launcher/command_train.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include "launcher/launch.h"
#include "launcher/rank.h"
#include "launcher/run_directory.h"
#include "runtime/job/job.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/train.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

struct TrainCommand {
  JobOptions job;
  LaunchOptions launch;
  std::string run_dir;
  std::string resume = "auto";
};

std::vector<std::string> rank_arguments(const TrainCommand& command, const std::string& resume) {
  std::vector<std::string> arguments{"train"};
  for (const std::string& argument : command.job.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--resume", resume, "--device", command.launch.device});
  if (!command.run_dir.empty()) arguments.insert(arguments.end(), {"--run-dir", command.run_dir});
  return arguments;
}

ExitCode start_ranks(const TrainCommand& command) {
  // Before anything is started: a wrong job is one error, not one a rank.
  const fs::path run_dir = run_directory(command.run_dir, job::load(command.job.job, command.job.overrides));
  make_run_directory(run_dir);
  const auto begin = fs::file_time_type::clock::now();
  const auto arguments = [&](int restart) {
    // What the lost ranks have saved is newer than what the user named.
    const bool saved = restart > 0 && saved_since(run_dir, begin);
    return rank_arguments(command, saved ? "auto" : command.resume);
  };
  return launch(command.launch, {.arguments = arguments, .saves_on_request = true});
}

/// Until training listens to signals there is nothing to save: asked to stop, the process just ends.
void end_on_request() {
  for (const int number : {SIGTERM, SIGINT}) {
    std::signal(number, [](int) { _exit(static_cast<int>(ExitCode::kPreempted)); });
  }
}

ExitCode run(const TrainCommand& command) {
  const auto process_start = std::chrono::system_clock::now();
  end_on_request();
  command.launch.require_device();
  if (must_start_ranks(command.launch)) return start_ranks(command);
  return run_rank(command.job, command.launch, [&](comm::World& world, const job::Job& job, Device device) {
    // A build for GPUs that finds none says why, and trains.
    if (command.launch.device == "auto" && device == kCpu && world.rank() == 0 && !gpu::runtime_version().empty()) {
      std::printf("training on the CPU: %s\n", gpu::why_none().c_str());
    }
    const fs::path run_dir = run_directory(command.run_dir, job);
    return train::train(world, {job, run_dir, command.resume, process_start, device});
  });
}

}  // namespace

void add_train(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<TrainCommand>();
  CLI::App& train = *app.add_subcommand("train", "train a job");
  command->job.add_to(train);
  command->launch.add_to(train, true);
  train.add_option("--run-dir", command->run_dir, "where the run's files go; default: runs/<the job's name>")
      ->type_name("DIR");
  train.add_option("--resume", command->resume, "auto: from the run's newest whole checkpoint; never; or a checkpoint")
      ->capture_default_str()
      ->type_name("auto|never|CHECKPOINT");
  train.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
