// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include "runtime/base/process.h"

// Signals to processes that a test has started, but not as its children: for those there is signal_child(). Each throws
// std::invalid_argument where the process is not what it has to be, and then nobody gets a signal.

namespace lockstep::support {

/// The parent's process id, as /proc says; 0 where there is no such process.
inline pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  fields >> state >> parent;
  return parent;
}

/// Whether the process was started with this environment variable.
inline bool has_variable(pid_t pid, const std::string& assignment) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ");
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry == assignment) return true;
  }
  return false;
}

inline void signal_if(bool ours, const ProcessWatch& process, int number, const std::string& what) {
  if (process.pid() <= 1 || !ours) {
    throw std::invalid_argument("process " + std::to_string(process.pid()) + " gets no signal: it is not " + what);
  }
  process.signal(number);
}

/// A child's child, and so on.
inline void signal_descendant(pid_t pid, int number) {
  const ProcessWatch process(pid);  // first, so that what is checked is what gets the signal
  pid_t ancestor = pid > 1 ? parent_of(pid) : 0;
  while (ancestor > 1 && ancestor != ::getpid()) ancestor = parent_of(ancestor);
  signal_if(ancestor == ::getpid(), process, number, "a descendant of this test");
}

/// A rank beside this one, started by the same launcher, that has said that this is its process id.
inline void signal_rank(int rank, pid_t pid, int number) {
  const ProcessWatch process(pid);
  const std::string value = std::to_string(rank);
  const bool beside = pid > 1 && ::getppid() > 1 && parent_of(pid) == ::getppid() &&
                      (has_variable(pid, "OMPI_COMM_WORLD_RANK=" + value) || has_variable(pid, "RANK=" + value));
  signal_if(beside, process, number, "rank " + value + " of this test");
}

}  // namespace lockstep::support
