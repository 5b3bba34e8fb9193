// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace lockstep::launcher {

/// Where this process is a container's first one, number 1, goes on in a child and does what such a process has to:
/// takes note of the end of every process that was left to it, and hands signals on to the child. Returns the child's
/// exit code once that has ended. In the child, and in any other process, returns none at once.
std::optional<int> serve_as_first_process();

}  // namespace lockstep::launcher
