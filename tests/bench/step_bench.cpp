// SPDX-License-Identifier: Apache-2.0
// A job's training step on a batch that lies on the device, without loading data: what the device can do, beside
// PyTorch's figures of tests/bench/pytorch_gpu.py and tests/bench/pytorch_models.py, which are taken alike:
//   build/release/bin/step_bench JOB [--device cuda|cpu] [--seconds S] [--losses N] [--started TIME] [PATH=VALUE...]
// Warms up and prints a JSON line, then runs a round of steps and prints a line for each line that it reads. --losses:
// how many of the first losses the first line has. --started: when the process was started, in seconds since 1970. The
// ranks of a job each read the same lines; torchrun's environment variables make a process one of them.
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/optim/schedule.h"
#include "runtime/step/uploader.h"
#include "runtime/tensor/gpu.h"
#include "runtime/train/initial_weights.h"
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
  int losses = 0;
  double started = 0.0;
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// A line of /proc/self/status in bytes: VmRSS is what the process holds now, VmHWM the most that it has held.
std::int64_t resident_bytes(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != line + ":") continue;
    std::int64_t kib = 0;
    status >> kib;
    return 1024 * kib;
  }
  return 0;
}

/// VmHWM begins anew: what loading the weights took is no part of a step. A container may forbid it.
void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

/// This rank's share of the job's first batch.
data::Batch first_batch(const job::Job& job, const data::DatasetPtr& dataset, const comm::World& world) {
  data::LoaderOptions options;
  options.global_batch = job.data().global_batch();
  options.rank = world.rank();
  options.world_size = world.size();
  options.seed = job.seed();
  options.shuffle = job.data().shuffle();
  options.prefetch = 0;
  return data::Loader(dataset, options).next();
}

class StepBench {
 public:
  explicit StepBench(const Arguments& arguments)
      : resident_at_start_(resident_bytes("VmRSS")),
        device_(arguments.device),
        job_(job::load(arguments.job, arguments.overrides)),
        world_(comm::World::from_environment({.device = device_})),
        dataset_(data::make_dataset(job::data_options(job_.data()), data::Split::kTrain)),
        network_(job_, data::describe(*dataset_), device_),
        status_(world_.rank()),
        job_step_(job_, world_, network_, status_),
        uploader_(device_),
        inputs_(uploader_.upload(1, {first_batch(job_, dataset_, world_)}, false)) {
    if (job_.has_init_from()) train::load_initial_weights(job_, network_.model());
    const double rate = job_.optimizer().has_sgd() ? job_.optimizer().sgd().lr() : 1e-4;
    network_.optimizer().set_learning_rate(rate);
  }

  void warm_up(const Arguments& arguments) {
    std::vector<float> losses;
    run(1);
    const double first_step = now() - arguments.started;
    for (int i = 0; i < arguments.losses; ++i) {
      if (i > 0) run(1);
      losses.push_back(job_step_.step().device_outcome().read().loss);
    }
    run(10);  // captures the graph
    const auto start = std::chrono::steady_clock::now();
    run(5);
    const double step = of_rank_0(microseconds_since(start) / 5);
    trains_ = static_cast<int>(std::clamp(arguments.seconds * 1e6 / step, 1.0, kMostTrains));
    steps_ = static_cast<int>(std::clamp(arguments.seconds * 1e6 / step / trains_, 1.0, kMostSteps));
    forget_peak();
    std::printf("{\"ready\": true, \"first_step_ms\": %.1f, \"parameters\": %lld, \"losses\": [%s]}\n",
                1e3 * first_step, static_cast<long long>(network_.arena().size()),
                fmt::format("{}", fmt::join(losses, ", ")).c_str());
    std::fflush(stdout);
  }

  void round() {
    const std::uint64_t graphs = job_step_.step().graph_launches();
    std::uint64_t launch_waits = 0;
    std::vector<double> times, launches;
    for (int train = 0; train < trains_; ++train) {
      const auto start = std::chrono::steady_clock::now();
      const std::uint64_t before = gpu::host_waits();
      launch(steps_, launches);
      launch_waits += gpu::host_waits() - before;
      Stream::current(device_).synchronize();
      times.push_back(microseconds_since(start) / steps_);
    }
    const step::StepOutcome outcome = job_step_.step().device_outcome().read();
    const double steps = trains_ * steps_;
    std::printf(
        "{\"step_ms\": %.5f, \"host_us\": %.2f, \"host_waits\": %.3f, \"peak_memory_bytes\": %zu, \"steps\": %.0f, "
        "\"graph_share\": %.3f, \"graph_nodes\": %zu, \"loss\": %.6g, \"skipped\": %lld, \"resident_at_start\": %lld, "
        "\"peak_resident\": %lld}\n",
        1e-3 * bench::median(times), bench::median(launches), static_cast<double>(launch_waits) / steps,
        memory_statistics(device_).peak, steps, static_cast<double>(job_step_.step().graph_launches() - graphs) / steps,
        job_step_.step().graph_nodes(), static_cast<double>(outcome.loss),
        static_cast<long long>(outcome.scale.skipped_steps), static_cast<long long>(resident_at_start_),
        static_cast<long long>(resident_bytes("VmHWM")));
    std::fflush(stdout);
  }

 private:
  static constexpr double kMostTrains = 9;  ///< of steps; the median one is reported
  /// A longer train would fill the queue of launches, and the host would wait for the device.
  static constexpr double kMostSteps = 200;

  /// All ranks take as many steps.
  double of_rank_0(double value) {
    if (world_.size() == 1) return value;
    return std::stod(world_.communicator()->broadcast_text(std::to_string(value), 0));
  }

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

  std::int64_t resident_at_start_;
  Device device_;
  job::Job job_;
  comm::World world_;
  data::DatasetPtr dataset_;
  train::Network network_;
  train::RankStatus status_;
  train::JobStep job_step_;
  step::Uploader uploader_;
  step::StepInputs inputs_;
  int trains_ = 1;
  int steps_ = 1;  ///< of a train
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
    } else if (word == "--losses" && has_value) {
      arguments.losses = std::atoi(argv[++i]);
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
