// SPDX-License-Identifier: Apache-2.0
#include "comm/group/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace lockstep::comm {

ProcessWatch::ProcessWatch(pid_t pid) : pid_(pid), descriptor_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : pid_(other.pid_), descriptor_(std::exchange(other.descriptor_, -1)) {}

ProcessWatch::~ProcessWatch() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessWatch::gone() const {
  pollfd ended{descriptor_, POLLIN, 0};
  return descriptor_ >= 0 && poll(&ended, 1, 0) > 0;
}

}  // namespace lockstep::comm
