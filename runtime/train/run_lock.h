// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lockstep::train {

/// Keeps a run directory to one run at a time: two that write the same metrics and checkpoints would spoil both. The
/// system releases it when the process ends, however it ends. Held by rank 0.
class RunLock {
 public:
  /// Makes the directory where it is missing, and waits some seconds for a run there that is just ending. Throws
  /// UsageError when that one goes on, StorageError. Where the file system knows no locks, there is none.
  explicit RunLock(const std::filesystem::path& run_dir);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace lockstep::train
