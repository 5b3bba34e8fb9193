// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/data/data_digest.h"

namespace lockstep::train {

/// The differences between the data of the ranks, a line each, with the ranks; empty where they agree. `ranks` holds
/// the same data sets of each rank.
std::vector<std::string> data_differences(const std::vector<std::vector<data::DataDigest>>& ranks);

/// This rank's digests of its data, which `read` computes on a thread of its own: it may take one rank far longer than
/// another, and the ranks must not take each other for lost. Throws what `read` throws, and UsageError, on every rank
/// alike, where the ranks see different data: they would take different samples for the same. A collective.
std::vector<data::DataDigest> require_same_data(const std::function<std::vector<data::DataDigest>()>& read,
                                                comm::Communicator& communicator);

}  // namespace lockstep::train
