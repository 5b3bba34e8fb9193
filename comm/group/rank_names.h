// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

/// "rank 1", "ranks 1, 3"
std::string rank_names(const std::vector<int>& ranks);

}  // namespace lockstep::comm
