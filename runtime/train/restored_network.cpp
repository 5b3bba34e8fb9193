// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/restored_network.h"

#include <spdlog/spdlog.h>

#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

RestoredFrom restore_network(Network& network, comm::World& world, const job::Job& job, const SavedModel& saved) {
  RestoredFrom restored;
  step::on_rank_zero(*world.communicator(), [&] {
    const checkpoint::Checkpoint found = find_checkpoint(saved.checkpoint);
    for (const std::string& notice : found.notices) spdlog::warn(notice);
    restore_for(job, found, [&] { step::restore_weights(network.arena(), found, weights_of(saved.raw_weights)); });
    restored = {found.path, !saved.raw_weights && step::has_mean(found)};
  });
  // It sends rank 0's weights to every rank when it is made.
  const comm::DistributedDataParallel ddp(network.model(), world, job::ddp_options(job.comm()));
  return restored;
}

}  // namespace lockstep::train
