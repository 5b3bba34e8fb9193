// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/mpi_channel.h"

namespace lockstep::comm {

/// A communicator whose collectives run on `channel`.
std::shared_ptr<Communicator> make_mpi_communicator(std::shared_ptr<MpiChannel> channel);

}  // namespace lockstep::comm
