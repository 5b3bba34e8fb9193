// SPDX-License-Identifier: Apache-2.0
#include "comm/group/rank_names.h"

#include <fmt/format.h>

namespace lockstep::comm {

std::string rank_names(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string rank_name(int rank, std::int64_t process, const std::string& host, const std::string& here) {
  return fmt::format("rank {} (process {}{})", rank, process, host == here ? "" : " on " + host);
}

}  // namespace lockstep::comm
