// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/communicator.h"

namespace lockstep::train {

/// Reduces every rank's number by `operation`, in float32. A collective.
double over_ranks(double mine, comm::ReduceOp operation, comm::Communicator& communicator);

/// Whether it is so on any rank. A collective.
bool any_rank(bool mine, comm::Communicator& communicator);

}  // namespace lockstep::train
