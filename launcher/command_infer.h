// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/options.h"

namespace lockstep::launcher {

/// Adds `lockstep infer`. When the command line names it, `chosen` becomes what to do.
void add_infer(CLI::App& app, Action& chosen);

}  // namespace lockstep::launcher
