// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "comm/group/operation.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

/// A rank's state, as other ranks see it.
enum class PeerState : std::uint32_t { kRunning, kFailed, kLeft, kGone };

// Errors of a rank that cannot complete `what` because of other ranks, which `names` lists.

/// For ranks that will never arrive; `state` is not kRunning.
PeerError absent(const std::string& what, const std::string& names, PeerState state);
/// For ranks that did not arrive in time. `names` is empty where all arrived and the call itself did not end.
PeerError late(const std::string& what, const std::string& names, std::chrono::milliseconds timeout);
/// For a rank whose order of calls is lost since an earlier error.
PeerError out_of_order(const std::string& what, int rank);
/// For ranks that do not all mean the same collective; `operations[i]` is that of `ranks[i]`.
PeerError disagreement(std::span<const Operation> operations, std::span<const int> ranks, const std::string& channel);

}  // namespace lockstep::comm
