// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/communicator.h"
#include "runtime/nn/module.h"

namespace lockstep::comm {

/// Joins every batch norm below `model` over the ranks of `communicator`, on a channel of its own: statistics are those
/// of the global batch, weighted by each rank's rows, float32 on the wire; a rank without samples takes part with count
/// 0. Training flags and running statistics are kept. A collective. The result owns the channel; with it ends the
/// synchronisation, so it must outlive the model's last forward and backward, and the model must outlive it.
///
/// `group_size` > 0: over groups of so many consecutive ranks instead; throws FieldError unless it divides their
/// number.
std::shared_ptr<void> convert_sync_batch_norm(nn::Module& model, Communicator& communicator, int group_size = 0);

}  // namespace lockstep::comm
