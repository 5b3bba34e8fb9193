// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// Where PATH leads to a program of this name that may be run; none where it does not.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace lockstep
