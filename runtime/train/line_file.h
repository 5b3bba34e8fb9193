// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "runtime/base/descriptor.h"

namespace lockstep::train {

/// A text file that grows by whole lines: a reader, during the run or after a crash, sees no half of one. The
/// destructor drops what was not flushed.
class LineFile {
 public:
  /// Opens the file to append; makes it where it is missing. Throws StorageError.
  explicit LineFile(std::filesystem::path path);

  /// `line` comes without its end. Kept in memory until flush().
  void add(const std::string& line);
  /// Hands the lines to the system. Throws StorageError, also where the file at this path is no longer this one:
  /// deleted or replaced, and with it all that would be written.
  void flush();
  /// Whether the file at this path still is this one.
  bool in_place() const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::string pending_;
};

}  // namespace lockstep::train
