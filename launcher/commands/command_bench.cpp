// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "launcher/commands/commands.h"
#include "runtime/job/job.h"
#include "runtime/train/data_bench.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

struct BenchCommand {
  JobOptions job;
  bool data = false;
  double seconds = 3;
  bool json = false;
};

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

ExitCode run(const BenchCommand& command) {
  const job::Job job = job::load(command.job.job, command.job.overrides);
  const train::DataBench bench = train::bench_data(job, std::chrono::duration<double>(command.seconds));
  if (command.json) {
    std::printf("%s\n", bench_json(bench).dump(2).c_str());
  } else {
    print(bench);
  }
  return ExitCode::kDone;
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<BenchCommand>();
  CLI::App& bench = *app.add_subcommand("bench", "measure how fast a job's training samples come, without a model");
  command->job.add_to(bench);
  bench.add_flag("--data", command->data, "measure the training data: read, decode, augment, normalise")->required();
  bench.add_option("--seconds", command->seconds, "how long, with each number of threads")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  bench.add_flag("--json", command->json, "print the result as JSON");
  bench.callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace lockstep::launcher
