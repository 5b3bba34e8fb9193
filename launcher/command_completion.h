// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/options.h"

namespace lockstep::launcher {

/// Adds `completion`, which writes a shell's script, and `man`, which writes a manual page: of the commands that `app`
/// has when it parses.
void add_completion(CLI::App& app, Action& chosen);
void add_man(CLI::App& app, Action& chosen);

}  // namespace lockstep::launcher
