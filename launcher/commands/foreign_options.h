// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace lockstep::launcher {

/// The words for an option that training scripts have and `command` has not, as "--lr": "a field of the job says it:
/// --set optimizer.adamw.lr=3e-4", with the value that `arguments` give and the optimizer of the job that they name.
/// Empty for options of which nothing is known, and where `command` has nothing for them either.
std::string instead_of_foreign(const std::string& option, const CLI::App& command,
                               std::span<const char* const> arguments);

}  // namespace lockstep::launcher
