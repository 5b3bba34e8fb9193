// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/tensor/as_error.h"

namespace lockstep::launcher {

/// An error as the user reads it; `where` is empty or "on rank 1". With colour for a terminal.
///
///   lockstep: error on rank 1 (storage, exit 4)
///     no space left on device
///     → Make room, then run again.
std::string error_block(const Error& error, const std::string& where, bool color);

/// Prints the block to stderr, in one piece.
void print_error(const Error& error, const std::string& where = "");

/// Of several ranks that fail, the one that knows most is to speak, and ends the job before the others do: an error of
/// its own comes before the loss of a peer, and rank 0 before the others, so that what befalls all is said once. This
/// waits until it is this rank's turn. `joined`: the ranks have found each other, so that each can end the others.
void give_way(const Error& error, bool joined);

/// Prints the error as that of this rank and returns its exit code.
int report(const Error& error);

}  // namespace lockstep::launcher
