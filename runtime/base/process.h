// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "runtime/base/descriptor.h"

namespace lockstep {

// Every signal of this project goes through signal_child() or ProcessWatch::signal(). Both reach exactly one process:
// to kill(), 0 and negative numbers are groups of processes, and 1 is the machine's first process.

/// Sends `number` to a child of this process that it has not waited for. Throws std::invalid_argument for any other
/// process id; what fork() returns where it fails, -1, is one.
void signal_child(pid_t child, int number);

/// Whether there is a process of this number, if only one that waits for its parent to take note of its end. False for
/// 0 and negative numbers.
bool process_exists(pid_t pid);

/// The facts that /proc tells of a process.
struct ProcessFacts {
  char state = '?';           ///< 'R' runs, 'S' sleeps, 'D' waits for a device, 'T' stopped, 'Z' has ended, ...
  std::uint64_t started = 0;  ///< clock ticks from the boot; with the number it names one process
};
/// None where there is no such process, or it cannot be seen.
std::optional<ProcessFacts> process_facts(pid_t pid);

/// Watches another process of this machine, which need not be a child.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);

  pid_t pid() const { return pid_; }
  /// For poll(): readable once the process has ended; -1 where it cannot be watched.
  int descriptor() const { return descriptor_.get(); }
  /// Whether the process has ended since the watch began. False for a process that cannot be seen from here, such as
  /// one in another container.
  bool gone() const;
  /// Sends `number` to the process that the watch began with: a later one with the same number gets nothing. Does
  /// nothing where that has ended or cannot be watched. Throws std::invalid_argument for process 1.
  void signal(int number) const;

 private:
  pid_t pid_;
  Descriptor descriptor_;  // a pidfd, which a new process with a reused number cannot deceive
};

}  // namespace lockstep
