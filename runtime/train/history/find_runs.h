// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace lockstep::train {

/// Whether a run has written into the directory.
bool holds_run(const std::filesystem::path& directory);

/// The runs in a folder and in the folders below it, sorted by path; the folder itself where it is one. A run's own
/// folders and symbolic links are not searched. Throws StorageError where the folder cannot be read.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& folder);

}  // namespace lockstep::train
