// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/options.h"

namespace lockstep::launcher {

/// Adds `lockstep bench`. When the command line names it, `chosen` becomes what to do.
void add_bench(CLI::App& app, Action& chosen);

}  // namespace lockstep::launcher
