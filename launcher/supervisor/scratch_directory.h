// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "runtime/base/descriptor.h"

namespace lockstep::launcher {

/// A directory for a job's files while it starts: on /dev/shm, in memory, where there is one. The constructor removes
/// those of this user whose owners were killed.
class ScratchDirectory {
 public:
  /// Throws StorageError.
  ScratchDirectory();
  ~ScratchDirectory() { remove(); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  /// Empty once it is removed.
  const std::filesystem::path& path() const { return path_; }
  bool in_memory() const;

  /// Removes it with all that is in it. What processes have open or mapped stays theirs.
  void remove();

 private:
  std::filesystem::path path_;
  Descriptor lock_;  ///< of a file in the directory
};

}  // namespace lockstep::launcher
