// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "comm/group/communicator.h"

namespace lockstep::train {

/// Why samples could not be read, by their numbers: what each rank says of its own, on every rank. A collective.
std::map<std::int64_t, std::string> failures_of_all(const std::map<std::int64_t, std::string>& mine,
                                                    comm::Communicator& communicator);

}  // namespace lockstep::train
