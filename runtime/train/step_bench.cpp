// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_bench.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/data/description.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/floors.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/initial_weights.h"
#include "runtime/train/job_step.h"
#include "runtime/train/link_bench.h"
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
        job_(with_steps(job, *data_.train())),
        network_(job_, data::describe(*data_.train()), device),
        status_(world.rank()),
        clock_(
            device, [] { return Clock::now().time_since_epoch(); },
            [this](const step::ClockedEvent& event) { events_.push_back(event); }),
        memory_clock_(
            kCpu, [] { return Clock::now().time_since_epoch(); },
            [this](const step::ClockedEvent& event) { memory_->add(event); }),
        step_(job_, world, network_, status_, {&clock_, &memory_clock_}),
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
    StepSchedule schedule;
  };
  Clocked run_clocked() {
    events_.clear();
    const auto begin = Clock::now();
    clock_.begin();
    const StepReport report = train();
    const auto trained = Clock::now();
    const step::StepTimes times = clock_.end();
    // On a GPU the end reads the times of the step, which is no part of it.
    const auto end = network_.device() == kCpu ? Clock::now() : trained;
    samples_ = report.samples;
    Clocked clocked{.ms = milliseconds(end - begin), .times = times, .schedule = step_schedule_of(events_)};
    if (report.rank_seconds) clocked.waited_ms = 1e3 * *report.rank_seconds;
    return clocked;
  }

  /// Trains a step whose time nobody looks at.
  StepMemory run_watched() {
    memory_.emplace(network_.device());
    memory_clock_.begin();
    train();
    memory_clock_.end();
    const StepMemory memory = memory_->result();
    memory_.reset();
    return memory;
  }

  void describe(StepProfile& profile) {
    std::map<const nn::Module*, std::string> paths;
    network_.model().for_each([&](const std::string& path, nn::Module& module) { paths.emplace(&module, path); });
    fill_passes(profile, clock_.operations(), [&](const nn::Module* module) {
      const auto found = paths.find(module);
      return found == paths.end() ? std::string() : found->second;
    });
    profile.samples = samples();
    profile.buckets = static_cast<std::int64_t>(step_.ddp().reducer().buckets().size());
    profile.wire_dtype = network_.arena().wire().dtype();
    profile.compute_dtype = network_.arena().options().compute_dtype;
    describe(profile.schedule);
  }

  void describe(StepSchedule& schedule) {
    const comm::DdpOptions options = job::ddp_options(job_.comm());
    for (const comm::Bucket& bucket : step_.ddp().reducer().buckets()) {
      schedule.bucket_elements.push_back(bucket.end - bucket.begin);
    }
    const DType wire = network_.arena().wire().dtype();
    schedule.reduced_dtype = options.reduce_in_float32 && is_reduced(wire) ? DType::kFloat32 : wire;
    schedule.lanes = options.reduction_streams;
    schedule.norm_group = options.sync_batch_norm_group;
    const auto& norms = network_.arena().statistics();
    if (!options.sync_batch_norm || norms.empty()) return;
    for (const auto& [name, statistics] : norms) schedule.norm_numbers += statistics->committed().numel();
    schedule.norm_numbers /= static_cast<std::int64_t>(norms.size());
  }

  std::int64_t samples() const { return samples_; }  ///< of a step

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
  std::vector<step::ClockedEvent> events_;  ///< of the step that is timed
  std::optional<MemoryWatch> memory_;       ///< of a step that is watched
  step::StepClock clock_;
  step::StepClock memory_clock_;  ///< on the host, which takes memory before a GPU gets to the work
  JobStep step_;
  StepsInFlight in_flight_;
  std::uint64_t number_ = 0;
  std::int64_t samples_ = 0;
};

job::Job part_to_bench(job::Job job) {
  job.mutable_data()->clear_eval();
  return job;
}

/// Each timed step has one without a clock before it.
struct TimedSteps {
  std::vector<double> clocked, unclocked, waited;
  std::vector<StepSchedule> schedules;
  std::array<std::vector<double>, step::kStepParts> parts;

  /// Without what the clock costs.
  StepSchedule schedule() const { return median_of(schedules, spread_of(unclocked).p50 / spread_of(clocked).p50); }
};

TimedSteps time_steps(Bench& bench, std::int64_t given, comm::Communicator& communicator) {
  double ms = bench.run();
  for (int i = 1; i < kWarmUpSteps; ++i) ms = std::min(ms, bench.run());
  const std::int64_t steps = agreed_steps(given, ms, communicator);
  TimedSteps timed;
  for (std::int64_t i = 0; i < steps; ++i) {
    timed.unclocked.push_back(bench.run());
    const Bench::Clocked step = bench.run_clocked();
    timed.clocked.push_back(step.ms);
    timed.schedules.push_back(step.schedule);
    if (step.waited_ms) timed.waited.push_back(*step.waited_ms);
    for (std::size_t p = 0; p < timed.parts.size(); ++p) {
      timed.parts[p].push_back(milliseconds(step.times.parts[p]));
    }
  }
  return timed;
}

}  // namespace

StepProfile bench_steps(comm::World& world, const job::Job& given, std::int64_t steps, Device device) {
  comm::Communicator& communicator = *world.communicator();
  StepProfile profile{.device = str(device), .threads = kernels::cpu::threads(), .floors = measure_floors(device)};
  if (world.size() > 1) profile.transport = measure_transport(communicator);

  const job::Job job = part_to_bench(given);
  std::optional<Bench> made(std::in_place, world, job, device);
  Bench& bench = *made;
  const TimedSteps timed = time_steps(bench, steps, communicator);
  profile.steps = static_cast<std::int64_t>(timed.clocked.size());
  profile.step = spread_of(timed.clocked);
  profile.unclocked = spread_of(timed.unclocked);
  for (std::size_t p = 0; p < timed.parts.size(); ++p) profile.parts[p] = spread_of(timed.parts[p]);
  profile.schedule = timed.schedule();
  bench.describe(profile);
  RankProfile mine{.step_ms = profile.step.mean};
  if (!timed.waited.empty()) mine.waited_ms = spread_of(timed.waited).mean;
  profile.ranks = gathered_ranks(mine, communicator);
  profile.memory = bench.run_watched();
  made.reset();
  for (const SmallerJob& smaller : smaller_jobs(job, world.size())) {
    Bench other(world, smaller.job, device);
    other.run();
    profile.smaller.push_back({smaller.setting, other.run_watched().peak});
  }
  return profile;
}

MeasuredBatch bench_batch(comm::World& world, const job::Job& job, std::int64_t steps, Device device) {
  Bench bench(world, part_to_bench(job), device);
  MeasuredBatch batch{.step = time_steps(bench, steps, *world.communicator()).schedule()};
  batch.samples = static_cast<double>(bench.samples()) / world.size();
  bench.describe(batch.step);
  return batch;
}

}  // namespace lockstep::train
