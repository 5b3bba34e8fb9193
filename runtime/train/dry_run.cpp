// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/dry_run.h"

#include <chrono>
#include <utility>
#include <vector>

#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/stream.h"
#include "runtime/train/derived_steps.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/rank_status.h"

namespace lockstep::train {

DryRun dry_run(const job::Job& given, int ranks, Device device) {
  job::Job job = given;
  job.clear_fault();
  comm::World world = comm::World::from_environment({.device = device});
  if (world.size() > 1) {
    throw UsageError("--dry-run trains a step in one process, here are " + std::to_string(world.size()) + " ranks",
                     "Run it without mpirun, srun or torchrun; --nproc says how many ranks share a batch.");
  }
  const data::DatasetPtr dataset = data::make_dataset(job::data_options(job.data()), data::Split::kTrain);
  data::LoaderOptions options = job::loader_options(job);
  options.world_size = ranks;
  data::Loader loader(dataset, options);
  job = with_steps(std::move(job), loader.steps_per_epoch());
  Network network(job, data::describe(*dataset), device);
  RankStatus status(0);
  JobStep step(job, world, network, status);
  std::vector<data::Batch> batches;
  for (std::uint32_t m = 0; m < job.train().accumulate(); ++m) batches.push_back(loader.next());

  reset_peak(device);
  const auto begin = std::chrono::steady_clock::now();
  step.step().run(batches);
  Stream::current(device).synchronize();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  return {.peak = memory_statistics(device).peak,
          .activations = memory_use(device, MemoryPurpose::kActivations).peak,
          .activation_gradients = memory_use(device, MemoryPurpose::kActivationGradients).peak,
          .step_ms = time.count()};
}

}  // namespace lockstep::train
