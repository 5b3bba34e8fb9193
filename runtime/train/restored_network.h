// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "comm/group/world.h"
#include "runtime/train/network.h"
#include "runtime/train/saved_model.h"

namespace lockstep::train {

/// What a network was restored from, on rank 0.
struct RestoredFrom {
  std::string checkpoint;
  bool of_mean = false;  ///< its weights are their running mean
};

/// Gives a network the weights and running statistics of rank 0's checkpoint, on every rank. Throws UsageError where it
/// is of another model, StorageError. A collective.
RestoredFrom restore_network(Network& network, comm::World& world, const job::Job& job, const SavedModel& saved);

}  // namespace lockstep::train
