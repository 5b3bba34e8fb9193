// SPDX-License-Identifier: Apache-2.0
#include "comm/group/rank_names.h"

#include <fmt/format.h>

namespace lockstep::comm {

std::string rank_names(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace lockstep::comm
