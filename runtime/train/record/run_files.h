// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lockstep::train {

/// Writes a small file whole or not at all, with retries; makes its directory. To the
/// StallWatch each try is one call. Throws StorageError.
void write_text(const std::filesystem::path& path, const std::string& text);

/// All of a file of the run's record, with retries. Throws StorageError: also for what is no regular file, which a read
/// could wait for, and for more than 64 MiB and a quarter of the memory that is free.
std::string read_record(const std::filesystem::path& path);

/// A small file of JSON, as summary.json; a value that is no object where it cannot be read or is none.
nlohmann::ordered_json read_json(const std::filesystem::path& path);

}  // namespace lockstep::train
