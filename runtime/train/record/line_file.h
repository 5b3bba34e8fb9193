// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/files/durable_file.h"

namespace lockstep::train {

/// A text file that grows by lines, in the run directory.
class LineFile {
 public:
  /// The first write opens the file; it makes it where it is missing.
  explicit LineFile(const std::filesystem::path& path) : path_(path.string()) {}

  const std::string& path() const { return path_; }
  /// Writes a first part of `lines`, and returns how many bytes. Throws FileError, also where this is no
  /// regular file, and another StorageError where the file at this path is no longer this one: deleted or replaced, and
  /// with it all that would be written.
  std::size_t write(std::string_view lines);
  /// Writes all of `lines`, with retries. Throws StorageError.
  void append(std::string_view lines);
  /// Waits until what is written is on the disk. A failure is not told: lines that a power cut may take are no reason
  /// to end.
  void sync() const;
  /// Throws StorageError where the file at this path is no longer this one or, before the first write, its directory is
  /// gone.
  void require_in_place() const;
  bool in_place() const;

 private:
  void open();

  std::string path_;
  std::optional<AppendFile> file_;
  bool within_line_ = false;  ///< half a line is the end of what was there before
};

}  // namespace lockstep::train
