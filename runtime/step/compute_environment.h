// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/tensor/device.h"

namespace lockstep::checkpoint {
class ComputeEnvironment;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::step {

/// What this rank computes with on `device`; `machines` is left to environment_of_run().
checkpoint::ComputeEnvironment compute_environment(Device device);

/// Rank 0's, for the checkpoint, with the number of machines. Rank 0 warns of ranks that differ from it. A collective.
/// Throws PeerError where require_one_rounding() does.
checkpoint::ComputeEnvironment environment_of_run(comm::Communicator& communicator, Device device);

/// What differs between two environments: "threads 2 -> 1". Of two devices, the device alone.
std::vector<std::string> differences(const checkpoint::ComputeEnvironment& before,
                                     const checkpoint::ComputeEnvironment& now);

/// How rank r's environment differs from rank 0's, a line a way: "threads 2 on rank 0, 1 on ranks 2, 3".
std::vector<std::string> disagreements(const std::vector<checkpoint::ComputeEnvironment>& ranks);

/// Throws PeerError where equal gradients would become unequal weights: some ranks have fused multiply-add, some not.
void require_one_rounding(const std::vector<checkpoint::ComputeEnvironment>& ranks);

/// What a run that goes on from `saved` with so many ranks computes with otherwise, in one sentence; empty where it
/// goes on to the same bits.
std::string resume_warning(const checkpoint::TrainingState& saved, const checkpoint::ComputeEnvironment& now,
                           int ranks);

/// {"device": "cpu", "threads": 2, ...}: the fields that are set.
std::string to_json(const checkpoint::ComputeEnvironment& environment);

}  // namespace lockstep::step
