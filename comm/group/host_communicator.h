// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/communicator.h"
#include "comm/group/shared_memory/neighbours.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// The Communicator between CPUs over a transport, through the memory that `neighbours` share where they do. A
/// collective of the transport's ranks.
std::shared_ptr<Communicator> make_host_communicator(std::shared_ptr<Transport> transport,
                                                     std::shared_ptr<Neighbours> neighbours);

}  // namespace lockstep::comm
