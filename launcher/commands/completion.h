// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/commands/option_table.h"

namespace lockstep::launcher {

// A script that has the shell complete commands, options, words that a value may be, and files. It asks the program
// nothing, so that it answers at once.

std::string bash_completion(const std::vector<CommandRow>& table);
std::string zsh_completion(const std::vector<CommandRow>& table);
std::string fish_completion(const std::vector<CommandRow>& table);

}  // namespace lockstep::launcher
