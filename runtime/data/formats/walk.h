// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace lockstep::data {

/// Calls `take` with all that is below the last of `path`, which are folders, each of which leads to the next. Links to
/// folders are followed, but not to a folder that one stands in already, so that a link to "." or ".." has an end.
/// Throws std::filesystem::filesystem_error, and StorageError for a folder that cannot be looked at.
void walk(const std::vector<std::filesystem::path>& path,
          const std::function<void(const std::filesystem::directory_entry&)>& take);

}  // namespace lockstep::data
