// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "comm/group/launch_environment.h"
#include "runtime/tensor/as_error.h"

namespace lockstep::launcher {

/// An error as the user reads it; `where` is empty or "on rank 1". With colour for a terminal.
///
///   lockstep: error on rank 1 (storage, exit 4)
///     no space left on device
///     → Make room, then run again.
std::string error_block(const Error& error, const std::string& where, bool color);

/// Prints the block to stderr, in one piece. Waits for a reader for a second at most.
void print_error(const Error& error, const std::string& where = "");

/// Several ranks may fail of one cause, and one error block is enough: the first rank to report ends the others. This
/// waits before a rank reports. An error of a rank's own waits less than the loss of a peer, and rank 0 less than the
/// others, so that the cause is reported. `joined`: the ranks have found each other, so that each can end the others.
void give_way(const Error& error, bool joined);

/// The launch environment, or that of a lone process where it is what is wrong.
comm::LaunchEnvironment environment_or_lone();

/// Prints the error as that of this rank and returns its exit code.
int report(const Error& error);

}  // namespace lockstep::launcher
