// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "comm/group/communicator.h"

namespace lockstep::step {

/// Runs `work` on rank 0 alone, for files that one rank reads or writes. An Error that it throws is thrown by every
/// rank alike, so that none waits for another that gave up. However long a slow disk takes, no rank counts as lost
/// meanwhile. `work` may run on a thread of its own and calls no collective. A collective.
void on_rank_zero(comm::Communicator& communicator, const std::function<void()>& work);

}  // namespace lockstep::step
