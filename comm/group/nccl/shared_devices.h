// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/communicator.h"

namespace lockstep::comm {

/// Where several ranks have one GPU, sets NCCL_HOSTID, unless it is set, so that NCCL takes each for a host of its own.
/// A collective of `host`. Call it before the process's first NCCL communicator: NCCL reads the variable once.
void tell_ranks_of_a_device_apart(Communicator& host, Device device);

}  // namespace lockstep::comm
