// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/options.h"

namespace lockstep::launcher {

/// Adds `lockstep init`. When the command line names it, `chosen` becomes what to do.
void add_init(CLI::App& app, Action& chosen);

}  // namespace lockstep::launcher
