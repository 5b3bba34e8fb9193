// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "runtime/base/descriptor.h"

namespace lockstep::launcher {

/// A directory for a job's files while it runs: on /dev/shm, in memory, where there is one. The destructor removes it
/// with all that is in it. The constructor removes those whose owners were killed.
class ScratchDirectory {
 public:
  /// Throws StorageError.
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool in_memory() const;

 private:
  std::filesystem::path path_;
  Descriptor lock_;  ///< of a file in the directory; the system drops it with the process
};

}  // namespace lockstep::launcher
