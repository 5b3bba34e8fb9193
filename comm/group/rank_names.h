// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::comm {

/// "rank 1", "ranks 1, 3"
std::string rank_names(const std::vector<int>& ranks);

/// "rank 1 (process 64 on b)"; without the host where that is `here`.
std::string rank_name(int rank, std::int64_t process, const std::string& host, const std::string& here);

}  // namespace lockstep::comm
