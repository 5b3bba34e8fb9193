// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/option_table.h"

namespace lockstep::launcher {

/// A manual page as troff: that of the command named, lockstep-train(1) for "train", or of the program, lockstep(1),
/// for an empty name. `table` must hold the command.
std::string manual_page(const std::vector<CommandRow>& table, const std::string& command);

}  // namespace lockstep::launcher
