// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace lockstep::train {

/// Calls `each` for every line of a file of any length, piece by piece, until it returns false. A line of more than 1
/// MiB is left out, and one that has no end. Throws StorageError where there is no such file.
void for_each_line(const std::filesystem::path& file, const std::function<bool(std::string_view)>& each);

}  // namespace lockstep::train
