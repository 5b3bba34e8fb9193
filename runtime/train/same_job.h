// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/job/job.h"

namespace lockstep::train {

/// The job and options that a rank was started with.
struct RankIdentity {
  std::string version;
  job::Job job;
};

/// The differences between ranks, a line a field with every value and its ranks; empty when they agree.
std::vector<std::string> disagreements(const std::vector<RankIdentity>& ranks);

/// Throws PeerError, on every rank alike, when the ranks run other versions of lockstep or other jobs. A collective.
void require_same_job(comm::Communicator& communicator, const job::Job& job);

}  // namespace lockstep::train
