// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/rank_claims.h"

#include <algorithm>

namespace lockstep::comm {

RankClaims::Stage RankClaims::call(int rank, const std::vector<int>& missing, Clock::time_point now) {
  Claim& claim = claims_.try_emplace(rank, Claim{now, now}).first->second;
  if (now - claim.last > kLapsed) claim = {now, now};
  claim.last = now;
  const auto is_decided = [&](int each) { return has_lasted(each, decided_, now); };
  claim.told = claim.told || std::ranges::all_of(missing, is_decided);
  if (claim.told) return Stage::kDecided;
  return has_lasted(rank, named_, now) ? Stage::kNamed : Stage::kPassesBy;
}

bool RankClaims::all_told(const std::vector<int>& missing) const {
  return std::ranges::all_of(missing, [this](int rank) {
    const auto claim = claims_.find(rank);
    return claim != claims_.end() && claim->second.told;
  });
}

bool RankClaims::has_lasted(int rank, Time time, Clock::time_point now) const {
  const auto found = claims_.find(rank);
  if (found == claims_.end()) return false;
  const Claim& claim = found->second;
  return claim.told || (now - claim.last <= kLapsed && claim.last - claim.first >= time);
}

}  // namespace lockstep::comm
