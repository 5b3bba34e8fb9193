// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/data/data_digest.h"

namespace lockstep::train {

/// What the data of the ranks differ in, a line each, with the ranks; empty where they agree. `ranks` holds the same
/// data sets of each rank.
std::vector<std::string> data_differences(const std::vector<std::vector<data::DataDigest>>& ranks);

/// Throws UsageError, on every rank alike, where the ranks see different data: they would take different samples for
/// the same. A collective.
void require_same_data(const std::vector<data::DataDigest>& mine, comm::Communicator& communicator);

}  // namespace lockstep::train
