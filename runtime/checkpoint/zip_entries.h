// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::checkpoint {

/// The files in a zip archive by their paths without the first folder, which PyTorch names after the archive:
/// "data.pkl", "data/0". Entries that are larger than the archive are refused: PyTorch compresses nothing. Throws
/// StorageError.
std::map<std::string, std::string> read_zip_entries(const std::string& path);

}  // namespace lockstep::checkpoint
