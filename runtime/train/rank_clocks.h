// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "comm/group/communicator.h"

namespace lockstep::train {

/// How a rank's steady clock stands to rank 0's.
struct ClockOffset {
  std::chrono::nanoseconds at{0};      ///< of this rank's clock
  std::chrono::nanoseconds offset{0};  ///< rank 0's time there is `at + offset`
  std::chrono::nanoseconds error{0};   ///< the offset is known up to so much
};

/// This rank's steady clock.
std::chrono::nanoseconds own_time();

/// Of several exchanges with rank 0 the one of the shortest round trip: rank 0 has read its clock within that. A
/// collective.
ClockOffset offset_to_rank_zero(comm::Communicator& communicator);

/// The time of rank 0 when this rank's clock is at `time`, by a measurement before and one behind: clocks drift apart
/// evenly.
std::chrono::nanoseconds at_rank_zero(std::chrono::nanoseconds time, const ClockOffset& before,
                                      const ClockOffset& behind);

}  // namespace lockstep::train
