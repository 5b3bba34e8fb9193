// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank_status.h"

namespace lockstep::train {

void RankStatus::phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t) {
  switch (phase) {
    case step::Phase::kForward:
      return set(RankPhase::kForward, step);
    case step::Phase::kBackward:
      return set(RankPhase::kBackward, step);
    case step::Phase::kUpdate:
      return set(RankPhase::kStep, step);
  }
}

}  // namespace lockstep::train
