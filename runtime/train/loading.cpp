// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/loading.h"

#include <algorithm>

#include "comm/group/launch_environment.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"

namespace lockstep::train {

data::LoaderOptions training_loader(const job::Job& job, const comm::World& world, Device device) {
  data::LoaderOptions options = job::loader_options(job);
  options.rank = world.rank();
  options.world_size = world.size();
  options.device = device;
  options.names_unread = false;
  if (options.decode_threads == 0) {
    const std::int64_t cores = comm::own_cores(comm::launch_environment());
    options.decode_threads = std::clamp<std::int64_t>(cores, 1, data::kMostDefaultDecodeThreads);
  }
  return options;
}

data::LoaderOptions evaluation_loader(const job::Job& job, const comm::World& world, Device device) {
  data::LoaderOptions options = training_loader(job, world, device);
  options.global_batch = job.data().eval_batch();
  options.accumulate = 1;
  options.seed = 0;
  options.shuffle = false;
  options.drop_last = false;
  return options;
}

}  // namespace lockstep::train
