// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "launcher/commands/commands.h"
#include "launcher/commands/job_plan.h"
#include "launcher/commands/prediction_report.h"
#include "launcher/commands/rank.h"
#include "launcher/commands/step_report.h"
#include "launcher/supervisor/launch.h"
#include "runtime/base/error.h"
#include "runtime/job/job.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/step/replicated.h"
#include "runtime/train/data_bench.h"
#include "runtime/train/plan.h"
#include "runtime/train/step_bench.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct BenchCommand {
  JobOptions job;
  LaunchOptions launch;
  PredictionOptions prediction;
  bool data = false;
  double seconds = 3;
  std::int64_t steps = 0;  ///< 0: as many as take some seconds
  bool all = false;
  bool json = false;
};

/// The heaviest operations and layers that are printed where nothing is said.
constexpr std::size_t kRows = 10;

Json bench_json(const train::DataBench& bench) {
  Json speeds = Json::array();
  for (const train::DataSpeed& speed : bench.speeds) {
    speeds.push_back({{"threads", speed.threads},
                      {"samples", speed.samples},
                      {"seconds", speed.seconds},
                      {"core_seconds", speed.core_seconds},
                      {"samples_per_s", speed.samples_per_second()},
                      {"samples_per_core_s", speed.samples_per_core_second()}});
  }
  return {{"sample_shape", bench.sample_shape},
          {"samples", bench.samples},
          {"batch", bench.batch},
          {"speeds", std::move(speeds)}};
}

void print(const train::DataBench& bench) {
  std::printf("%lld samples of %s, in batches of %lld\n\n%-8s %12s %19s\n", static_cast<long long>(bench.samples),
              bench.sample_shape.c_str(), static_cast<long long>(bench.batch), "threads", "samples/s",
              "samples/s and core");
  for (const train::DataSpeed& speed : bench.speeds) {
    std::printf("%-8lld %12.0f %19.0f\n", static_cast<long long>(speed.threads), speed.samples_per_second(),
                speed.samples_per_core_second());
  }
}

ExitCode bench_data(const BenchCommand& command) {
  const job::Job job = job::load(command.job.job, command.job.overrides);
  const train::DataBench bench = train::bench_data(job, std::chrono::duration<double>(command.seconds));
  if (command.json) {
    std::printf("%s\n", bench_json(bench).dump(2).c_str());
  } else {
    print(bench);
  }
  return ExitCode::kDone;
}

std::vector<std::string> rank_arguments(const BenchCommand& command) {
  std::vector<std::string> arguments{"bench"};
  for (const std::string& argument : command.job.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(), {"--device", command.launch.device});
  if (command.steps > 0) arguments.insert(arguments.end(), {"--steps", std::to_string(command.steps)});
  for (const std::string& argument : command.prediction.arguments()) arguments.push_back(argument);
  if (command.all) arguments.emplace_back("--all");
  if (command.json) arguments.emplace_back("--json");
  return arguments;
}

void print(const train::StepProfile& profile, const std::optional<train::MeasuredBatch>& half,
           const std::optional<train::MeasuredLinks>& links, const BenchCommand& command) {
  Json report = to_json(profile);
  report["prediction"] = links ? prediction_of(profile, half, command.prediction, *links) : Json();
  const std::size_t rows = command.all ? std::numeric_limits<std::size_t>::max() : kRows;
  std::string text =
      command.json ? report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : step_text(report, rows);
  if (links && !command.json) text += prediction_text(report["prediction"]);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// Throws UsageError where a rank has no whole number of samples in a step of half of the batch.
void require_half(const job::Job& job, int ranks) {
  const std::uint32_t batch = job.data().global_batch();
  const std::uint32_t least = 2 * job.train().accumulate() * static_cast<std::uint32_t>(ranks);
  if (batch < least || batch % least != 0) {
    throw UsageError(
        fmt::format("--predict-batches measures half of data.global_batch too, and {} is no multiple of {}", batch,
                    least),
        fmt::format("Give one: --set data.global_batch={}.", least * std::max(batch / least, 1u)));
  }
}

/// Before the bench, so that what cannot be predicted is said at once. A collective.
train::MeasuredLinks measured_links(comm::Communicator& communicator, const PredictionOptions& options, Device device) {
  const comm::RankLayout run = train::layout_of(communicator);
  step::on_rank_zero(communicator, [&] {
    if (device != kCpu) {
      throw UsageError("--predict knows how CPUs reduce, but the ranks are on GPUs", "Give --device cpu.");
    }
    options.layouts(run);
  });
  return train::measure_links(communicator, kernels::cpu::threads());
}

ExitCode bench_steps(const BenchCommand& command) {
  // Where a run of the job would keep checkpoints, of which there are none here.
  const std::filesystem::path no_run_directory;
  const auto require_sound = [&](const job::Checked& checked) {
    train::require_sound(plan_of(checked, command.launch, no_run_directory));
  };
  command.launch.require_device();
  if (must_start_ranks(command.launch)) {
    // A wrong job is one error, not one a rank.
    const job::Checked checked = job::load_checked(command.job.job, command.job.overrides);
    require_sound(checked);
    return launch(command.launch, {.arguments = [&](int) { return rank_arguments(command); },
                                   .timeout = timeout_of(checked.job.comm())});
  }
  return run_rank(command.job, command.launch, [&](comm::World& world, const job::Checked& checked, Device device) {
    comm::Communicator& communicator = *world.communicator();
    step::on_rank_zero(communicator, [&] { require_sound(checked); });
    std::optional<job::Job> half_job;
    if (!command.prediction.batches.empty()) {
      // Rank 0 alone tells of a batch that cannot be halved.
      step::on_rank_zero(communicator, [&] { require_half(checked.job, world.size()); });
      half_job = checked.job;
      half_job->mutable_data()->set_global_batch(checked.job.data().global_batch() / 2);
    }
    std::optional<train::MeasuredLinks> links;
    if (command.prediction.given()) links = measured_links(communicator, command.prediction, device);
    const train::StepProfile profile = train::bench_steps(world, checked.job, command.steps, device);
    std::optional<train::MeasuredBatch> half;
    if (half_job) half = train::bench_batch(world, *half_job, command.steps, device);
    step::on_rank_zero(communicator, [&] { print(profile, half, links, command); });
    return ExitCode::kDone;
  });
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<BenchCommand>();
  CLI::App& bench =
      *app.add_subcommand("bench", "train some steps of a job and say where their time goes; writes nothing");
  command->job.add_to(bench);
  command->launch.add_to(bench, false);
  CLI::Option& steps =
      *bench.add_option("--steps", command->steps, "how many steps to time; default: some seconds' worth")
           ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  CLI::Option& all = *bench.add_flag("--all", command->all, "list every operation and layer, not the ten heaviest");
  CLI::Option& data =
      *bench.add_flag("--data", command->data, "measure the training data alone: read, decode, augment, normalise");
  bench.add_option("--seconds", command->seconds, "of --data: how long, with each number of threads")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0))
      ->needs(&data);
  for (CLI::Option* option :
       {&steps, &all, bench.get_option("--nproc"), bench.get_option("--hosts"), bench.get_option("--device"),
        bench.get_option("--interface"), bench.get_option("--transport")}) {
    data.excludes(option);
  }
  command->prediction.add_to(bench, &data);
  bench.add_flag("--json", command->json, "print the result as JSON");
  bench.callback([command, &chosen] {
    chosen = [command] { return command->data ? bench_data(*command) : bench_steps(*command); };
  });
}

}  // namespace lockstep::launcher
