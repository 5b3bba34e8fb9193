// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::launcher {

/// Throws UsageError where the file that --out names is there already, or its folder is not.
void require_new_file(const std::filesystem::path& file);

/// Writes the file whole or not at all. Throws StorageError.
void write_new_file(const std::filesystem::path& file, std::string_view text);

}  // namespace lockstep::launcher
