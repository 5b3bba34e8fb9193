// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/descriptor.h"
#include "runtime/train/record/lease.h"

namespace lockstep::train {

/// Who holds a run directory, by what its RunLock has written there. kHere: a process of this machine, which lives;
/// kElsewhere: one of another machine, of which nobody knows here whether it lives.
enum class Holder { kNone, kHere, kElsewhere };
/// Takes no lock, so that no run is in its way.
Holder holder_of(const std::filesystem::path& run_dir);

/// Keeps a run directory to one run at a time: two that write the same metrics and checkpoints would spoil both. The
/// system releases it when the process ends, however it ends. Held by rank 0.
class RunLock {
 public:
  /// Ranks whose launcher was killed need a moment to see it.
  static constexpr std::chrono::milliseconds kPatience{10'000};

  /// Makes the directory where it is missing, its name durable, and removes what killed processes have left
  /// half-written in it. Waits for a run there that is just ending, having said on stderr for whom. Throws UsageError
  /// when that one goes on, StorageError. Where the file system knows no locks, as some of NFS, it says so and takes a
  /// Lease instead. `lock`: flock().
  using Flock = int (*)(int descriptor, int operation);
  explicit RunLock(const std::filesystem::path& run_dir, std::chrono::milliseconds patience = kPatience,
                   Flock lock = nullptr, Lease::Times lease = {});
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  /// Whether another run has it. `holder` names this one.
  bool is_busy(const std::string& holder);

  std::string path_;
  Flock flock_;
  Lease::Times times_;
  Descriptor file_;
  std::optional<Lease> lease_;  ///< in place of a lock
};

}  // namespace lockstep::train
