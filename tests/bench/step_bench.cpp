// SPDX-License-Identifier: Apache-2.0
// A job's training step on a batch that lies on the device, without loading data: what the device can do, beside
// PyTorch's figures of tests/bench/pytorch_gpu.py, which are taken alike:
//   build/release/bin/step_bench JOB [--device cuda|cpu] [--seconds S] [--started TIME] [PATH=VALUE...]
// Warms up and prints a JSON line, then runs a round of steps and prints a line for each line that it reads. --started:
// when the process was started, in seconds since 1970.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/optim/schedule.h"
#include "runtime/step/uploader.h"
#include "runtime/tensor/error.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace lockstep;

struct Arguments {
  std::string job;
  std::vector<std::string> overrides;
  Device device{DeviceType::kCuda, 0};
  double seconds = 1.0;
  double started = 0.0;
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// The job's first batch.
data::Batch first_batch(const job::Job& job, const data::DatasetPtr& dataset) {
  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  options.seed = job.seed();
  options.prefetch = 0;
  return data::Loader(dataset, options).next();
}

class StepBench {
 public:
  explicit StepBench(const Arguments& arguments)
      : device_(arguments.device),
        job_(job::load(arguments.job, arguments.overrides)),
        world_(comm::World::from_environment({.device = device_})),
        dataset_(data::make_dataset(job::data_options(job_.data()), data::Split::kTrain)),
        network_(job_, *dataset_, device_),
        status_(world_.rank()),
        job_step_(job_, world_, network_, status_),
        uploader_(device_),
        inputs_(uploader_.upload(1, {first_batch(job_, dataset_)}, false)) {
    const double rate = job_.optimizer().has_sgd() ? job_.optimizer().sgd().lr() : 1e-4;
    network_.optimizer().set_learning_rate(rate);
  }

  void warm_up(const Arguments& arguments) {
    run(1);
    const double first_step = now() - arguments.started;
    run(10);  // captures the graph
    const auto start = std::chrono::steady_clock::now();
    run(5);
    const double step = microseconds_since(start) / 5;
    steps_ = static_cast<int>(std::clamp(arguments.seconds * 1e6 / step / kTrains, 1.0, kMostSteps));
    std::printf("{\"ready\": true, \"first_step_ms\": %.1f, \"parameters\": %lld}\n", 1e3 * first_step,
                static_cast<long long>(network_.arena().size()));
    std::fflush(stdout);
  }

  void round() {
    const std::uint64_t graphs = job_step_.step().graph_launches();
    std::uint64_t launch_waits = 0;
    std::vector<double> times, launches;
    for (int train = 0; train < kTrains; ++train) {
      const auto start = std::chrono::steady_clock::now();
      const std::uint64_t before = gpu::host_waits();
      launch(steps_, launches);
      launch_waits += gpu::host_waits() - before;
      Stream::current(device_).synchronize();
      times.push_back(microseconds_since(start) / steps_);
    }
    const step::StepOutcome outcome = job_step_.step().device_outcome().read();
    const double steps = kTrains * steps_;
    std::printf(
        "{\"step_ms\": %.5f, \"host_us\": %.2f, \"host_waits\": %.3f, \"peak_memory_bytes\": %zu, \"steps\": %.0f, "
        "\"graph_share\": %.3f, \"loss\": %.6g, \"skipped\": %lld}\n",
        1e-3 * bench::median(times), bench::median(launches), static_cast<double>(launch_waits) / steps,
        memory_statistics(device_).peak, steps, static_cast<double>(job_step_.step().graph_launches() - graphs) / steps,
        static_cast<double>(outcome.loss), static_cast<long long>(outcome.scale.skipped_steps));
    std::fflush(stdout);
  }

 private:
  static constexpr int kTrains = 9;  ///< of steps; the median one is reported
  /// A longer train would fill the queue of launches, and the host would wait for the device.
  static constexpr double kMostSteps = 200;

  void launch(int steps, std::vector<double>& launches) {
    for (int i = 0; i < steps; ++i) {
      const auto start = std::chrono::steady_clock::now();
      job_step_.step().run(inputs_);
      launches.push_back(microseconds_since(start));
    }
  }

  void run(int steps) {
    std::vector<double> launches;
    launch(steps, launches);
    Stream::current(device_).synchronize();
  }

  Device device_;
  job::Job job_;
  comm::World world_;
  data::DatasetPtr dataset_;
  train::Network network_;
  train::RankStatus status_;
  train::JobStep job_step_;
  step::Uploader uploader_;
  step::StepInputs inputs_;
  int steps_ = 1;
};

/// Throws UsageError.
Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.started = now();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--device" && has_value) {
      if (std::string(argv[++i]) == "cpu") arguments.device = kCpu;
    } else if (word == "--seconds" && has_value) {
      arguments.seconds = std::atof(argv[++i]);
    } else if (word == "--started" && has_value) {
      arguments.started = std::atof(argv[++i]);
    } else if (arguments.job.empty() && !word.starts_with("-")) {
      arguments.job = word;
    } else if (word.find('=') != std::string::npos && !word.starts_with("-")) {
      arguments.overrides.push_back(word);
    } else {
      throw UsageError("step_bench does not know " + word);
    }
  }
  if (arguments.job.empty()) throw UsageError("step_bench needs a job");
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    StepBench bench(arguments);
    bench.warm_up(arguments);
    for (std::string line; std::getline(std::cin, line);) bench.round();
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "step_bench: %s\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "step_bench: %s\n", error.what());
    return 1;
  }
}
