// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

/// What tells whether a file or folder of data has changed, known without reading it.
struct DataFile {
  std::string path;
  std::uint64_t bytes = 0;    ///< of a folder: how many files are below it
  std::int64_t modified = 0;  ///< nanoseconds since 1970; of a folder: the latest of it and the folders below
  std::string digest;         ///< of the first 4096 bytes; of a folder: of the names below it

  bool operator==(const DataFile&) const = default;
};

/// Calls `take` with all that is below the last of `path`, which are folders, each of which leads to the next. Links to
/// folders are followed, but not to a folder that one stands in already, so that a link to "." or ".." has an end.
/// Throws std::filesystem::filesystem_error.
void walk(const std::vector<std::filesystem::path>& path,
          const std::function<void(const std::filesystem::directory_entry&)>& take);

/// The file or folder as it is now. An image that is overwritten in its place does not show in its folder. Throws
/// StorageError.
DataFile look_at(const std::string& path);

/// What differs of files that have the same places in both lists, a sentence each. That they lie elsewhere counts for
/// nothing.
std::vector<std::string> changes(const std::vector<DataFile>& before, const std::vector<DataFile>& now);

}  // namespace lockstep::data
