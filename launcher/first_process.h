// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace lockstep::launcher {

/// Where this process is a container's first one, number 1, forks a child in which the program goes on. The parent
/// reaps every process that was left to it and forwards signals to the child; returns the child's exit code once it
/// has ended. In the child, and in any other process, returns none at once.
std::optional<int> serve_as_first_process();

}  // namespace lockstep::launcher
