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

/// The environment that this rank computes in on `device`; environment_of_run() fills in `machines`.
checkpoint::ComputeEnvironment compute_environment(Device device);

/// Rank 0's, for the checkpoint, with the number of machines. Rank 0 warns of ranks that differ from it. A collective.
/// Throws PeerError where require_one_rounding() does.
checkpoint::ComputeEnvironment environment_of_run(comm::Communicator& communicator, Device device);

/// The differences between two environments: "threads 2 -> 1". Where the devices differ, the device alone.
std::vector<std::string> differences(const checkpoint::ComputeEnvironment& before,
                                     const checkpoint::ComputeEnvironment& now);

/// How rank r's environment differs from rank 0's, a line a way: "threads 2 on rank 0, 1 on ranks 2, 3".
std::vector<std::string> disagreements(const std::vector<checkpoint::ComputeEnvironment>& ranks);

/// Throws PeerError where equal gradients would become unequal weights: some ranks have fused multiply-add, some not.
void require_one_rounding(const std::vector<checkpoint::ComputeEnvironment>& ranks);

/// The differences that keep a run from going on from `saved` to the same bits with so many ranks, in one sentence;
/// empty where there are none.
std::string resume_warning(const checkpoint::TrainingState& saved, const checkpoint::ComputeEnvironment& now,
                           int ranks);

/// {"device": "cpu", "threads": 2, ...}: the fields that are set.
std::string to_json(const checkpoint::ComputeEnvironment& environment);

}  // namespace lockstep::step
