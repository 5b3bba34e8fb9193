// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "comm/group/operation.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

/// What the others know of a rank.
enum class PeerState : std::uint32_t { kRunning, kFailed, kLeft, kGone };

// What a rank says when it cannot go on with `what`, because of ranks that are called `names`.

/// For ranks that will never arrive; `state` is not kRunning.
PeerError absent(const std::string& what, const std::string& names, PeerState state);
/// For ranks that did not arrive in time; where all did, `names` is empty and it is the call that did not end.
PeerError late(const std::string& what, const std::string& names, std::chrono::milliseconds timeout);
/// For a rank whose order of calls is lost since an earlier error.
PeerError out_of_order(const std::string& what, int rank);
/// For ranks of which `operations[i]` is that of `ranks[i]`, and that do not all mean the same.
PeerError disagreement(std::span<const Operation> operations, std::span<const int> ranks, const std::string& channel);

}  // namespace lockstep::comm
