// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "comm/group/communicator.h"

namespace lockstep::comm {

/// Throws PeerError on every rank unless all give the same lines, each ended by '\n': "`what`: rank 0 has LINE, rank 2
/// has LINE", with the lowest rank that differs from rank 0, and the first line in which it does. A collective.
void require_same_text(Communicator& communicator, const std::string& lines, const std::string& what,
                       const std::string& advice);

}  // namespace lockstep::comm
