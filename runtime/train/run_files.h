// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::train {

/// Writes a small file whole or not at all, with retries; makes its directory. To the
/// StallWatch each try is one call. Throws StorageError.
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace lockstep::train
