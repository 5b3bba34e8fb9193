// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/nn/arena.h"

namespace lockstep::comm {

/// A hash (XXH3-128, 32 hex digits) of the float32 master weights by name, in the order of the names: two runs with
/// equal digests trained to the same bits.
std::string weights_digest(const nn::Arena& arena);

/// Compares masters, batch-norm statistics, the flat optimizer `state` and `parameter_state` (numbers in the order of
/// the arena's slots) of all ranks, tensor by tensor. Throws PeerError on every rank naming the first tensor that
/// differs and the ranks that hold the rarer bits. A collective.
void require_equal_weights(const nn::Arena& arena, const std::vector<std::pair<std::string, Tensor>>& state,
                           Communicator& communicator,
                           const std::vector<std::pair<std::string, Tensor>>& parameter_state = {});

}  // namespace lockstep::comm
