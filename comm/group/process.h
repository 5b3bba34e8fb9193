// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace lockstep::comm {

/// Watches another process of this machine, which need not be a child.
class ProcessWatch {
 public:
  explicit ProcessWatch(pid_t pid);
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) = delete;
  ~ProcessWatch();

  pid_t pid() const { return pid_; }
  /// Whether the process has ended since the watch began. False for a process that cannot be seen from here, such as
  /// one in another container.
  bool gone() const;

 private:
  pid_t pid_;
  int descriptor_;  // a pidfd, which a new process with a reused number cannot deceive; -1 where there is none
};

}  // namespace lockstep::comm
