// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_bench.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/data/description.h"
#include "runtime/data/sampler.h"
#include "runtime/job/job.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/floors.h"
#include "runtime/tensor/stream.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/rank_status.h"
#include "runtime/train/same_data.h"
#include "runtime/train/steps_in_flight.h"
#include "runtime/train/training_data.h"

namespace lockstep::train {

namespace {

using Clock = std::chrono::steady_clock;

/// Libraries choose their kernels, memory is taken, a GPU's step becomes a graph.
constexpr int kWarmUpSteps = 4;
constexpr double kMilliseconds = 4000;
constexpr std::int64_t kFewestSteps = 3;
constexpr std::int64_t kMostSteps = 300;

double milliseconds(std::chrono::nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

constexpr std::int64_t kInMemory = std::int64_t{64} << 20;
constexpr std::int64_t kInCache = std::int64_t{256} << 10;

MachineFloors measure_floors(Device device) {
  const auto giga = [](double rate) { return 1e-9 * rate; };
  return {.float32_gflops = giga(kernels::product_floor(DType::kFloat32, device)),
          .bfloat16_gflops = giga(kernels::product_floor(DType::kBFloat16, device)),
          .float16_gflops = giga(kernels::product_floor(DType::kFloat16, device)),
          .memory_gb_per_s = giga(kernels::copy_floor(kInMemory, device)),
          .cache_gb_per_s = giga(kernels::copy_floor(kInCache, device))};
}

/// The shortest of `count` all-reduces, in seconds. A collective.
double all_reduce_seconds(comm::Communicator& communicator, const Tensor& buffer, int count) {
  const Stream stream = Stream::current(buffer.device());
  double least = 0;
  for (int i = 0; i <= count; ++i) {  // the first one apart: it may make connections
    communicator.barrier(Stream::calling_thread());
    const auto begin = Clock::now();
    communicator.all_reduce(buffer, comm::ReduceOp::kSum, 1.0f, stream);
    stream.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i == 1 || (i > 1 && seconds < least)) least = seconds;
  }
  return least;
}

TransportFloor measure_transport(comm::Communicator& communicator) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 20;
  constexpr int kSmallOnes = 50, kLargeOnes = 10;
  const Storage memory = communicator.allocate(kNumbers * sizeof(float));
  const Tensor all = Tensor::view(memory, 0, {kNumbers}, DType::kFloat32);
  const double alpha = all_reduce_seconds(communicator, all.rows(0, 1), kSmallOnes);
  const double large = all_reduce_seconds(communicator, all, kLargeOnes);
  return {.transport = communicator.description(),
          .alpha_us = 1e6 * alpha,
          .gb_per_s = 1e-9 * static_cast<double>(all.bytes()) / std::max(large - alpha, 1e-9)};
}

/// Rank 0's choice, which all ranks take.
std::int64_t agreed_steps(std::int64_t given, double ms_of_one, comm::Communicator& communicator) {
  if (given > 0) return given;
  // Each timed one has one without a clock.
  const auto steps = static_cast<std::int64_t>(kMilliseconds / (2 * std::max(ms_of_one, 1e-3)));
  return std::stoll(communicator.broadcast_text(std::to_string(std::clamp(steps, kFewestSteps, kMostSteps)), 0));
}

std::vector<RankProfile> gathered_ranks(const RankProfile& mine, comm::Communicator& communicator) {
  std::vector<RankProfile> ranks;
  for (const std::string& text : communicator.all_gather_text(
           nlohmann::json{mine.step_ms, mine.waited_ms ? nlohmann::json(*mine.waited_ms) : nlohmann::json()}.dump())) {
    const auto numbers = nlohmann::json::parse(text);
    ranks.push_back({.step_ms = numbers.at(0)});
    if (!numbers.at(1).is_null()) ranks.back().waited_ms = numbers.at(1);
  }
  return ranks;
}

/// A job's training as far as steps need it.
class Bench {
 public:
  Bench(comm::World& world, const job::Job& job, Device device)
      : communicator_(*world.communicator()),
        data_(job),
        job_(with_steps(
            job, data::steps_per_epoch(data_.train()->size(), job.data().global_batch(), job.data().drop_last()))),
        network_(job_, data::describe(*data_.train()), device),
        status_(world.rank()),
        clock_(device),
        step_(job_, world, network_, status_, {&clock_}),
        in_flight_(network_, step_, communicator_) {
    require_same_data([this] { return data_.digests(); }, communicator_);
    take_initial_weights(job_, network_, step_, communicator_);
    data_.begin(job_, world, 1, {}, device);
  }

  /// Trains a step; its milliseconds.
  double run() {
    const auto begin = Clock::now();
    train();
    return milliseconds(Clock::now() - begin);
  }

  struct Clocked {
    double ms = 0;
    std::optional<double> waited_ms;  ///< for other ranks
    step::StepTimes times;
  };
  Clocked run_clocked() {
    const auto begin = Clock::now();
    clock_.begin();
    const StepReport report = train();
    const step::StepTimes times = clock_.end();
    samples_ = report.samples;
    const double ms = milliseconds(Clock::now() - begin);
    if (!report.rank_seconds) return {ms, std::nullopt, times};
    return {ms, 1e3 * *report.rank_seconds, times};
  }

  void describe(StepProfile& profile) {
    std::map<const nn::Module*, std::string> paths;
    network_.model().for_each([&](const std::string& path, nn::Module& module) { paths.emplace(&module, path); });
    fill_passes(profile, clock_.operations(), [&](const nn::Module* module) {
      const auto found = paths.find(module);
      return found == paths.end() ? std::string() : found->second;
    });
    profile.samples = samples_;
    profile.buckets = static_cast<std::int64_t>(step_.ddp().reducer().buckets().size());
    profile.wire_dtype = network_.arena().wire().dtype();
    profile.compute_dtype = network_.arena().options().compute_dtype;
  }

 private:
  StepReport train() {
    in_flight_.launch(++number_, data_, [] { return false; });
    StepsInFlight::Finished finished = in_flight_.finish();
    step_.step().require_progress(finished.outcome);
    return finished.report;
  }

  comm::Communicator& communicator_;
  TrainingData data_;
  job::Job job_;
  Network network_;
  RankStatus status_;
  step::StepClock clock_;
  JobStep step_;
  StepsInFlight in_flight_;
  std::uint64_t number_ = 0;
  std::int64_t samples_ = 0;
};

job::Job part_to_bench(job::Job job) {
  job.mutable_data()->clear_eval();
  return job;
}

}  // namespace

StepProfile bench_steps(comm::World& world, const job::Job& given, std::int64_t steps, Device device) {
  comm::Communicator& communicator = *world.communicator();
  StepProfile profile{.device = str(device), .threads = kernels::cpu::threads(), .floors = measure_floors(device)};
  if (world.size() > 1) profile.transport = measure_transport(communicator);

  Bench bench(world, part_to_bench(given), device);
  double ms = bench.run();
  for (int i = 1; i < kWarmUpSteps; ++i) ms = std::min(ms, bench.run());
  profile.steps = agreed_steps(steps, ms, communicator);
  std::vector<double> clocked, unclocked, waited;
  std::array<std::vector<double>, step::kStepParts> parts;
  for (std::int64_t i = 0; i < profile.steps; ++i) {
    unclocked.push_back(bench.run());
    const Bench::Clocked step = bench.run_clocked();
    clocked.push_back(step.ms);
    if (step.waited_ms) waited.push_back(*step.waited_ms);
    for (std::size_t p = 0; p < parts.size(); ++p) parts[p].push_back(milliseconds(step.times.parts[p]));
  }
  profile.step = spread_of(clocked);
  profile.unclocked = spread_of(unclocked);
  for (std::size_t p = 0; p < parts.size(); ++p) profile.parts[p] = spread_of(parts[p]);
  bench.describe(profile);
  RankProfile mine{.step_ms = profile.step.mean};
  if (!waited.empty()) mine.waited_ms = spread_of(waited).mean;
  profile.ranks = gathered_ranks(mine, communicator);
  return profile;
}

}  // namespace lockstep::train
