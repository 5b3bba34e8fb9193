// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/descriptor.h"
#include "runtime/base/process.h"

namespace lockstep::launcher {

/// How a child is started.
struct ChildCommand {
  std::vector<std::string> arguments;              ///< the program first
  std::map<std::string, std::string> environment;  ///< on top of this process's
};

/// A running mpirun or ssh. It has a process group of its own, so that a terminal's Ctrl-C reaches it through the
/// supervisor alone. When the supervisor dies, the system ends it. Its stdout and stderr are pipes that the supervisor
/// reads until the end: mpirun ends the job when a reader goes away.
class ChildProcess {
 public:
  /// Throws EnvironmentError.
  explicit ChildProcess(const ChildCommand& command);
  /// Kills it, should it still run.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The reading ends of its stdout and stderr. Reading never blocks.
  int output() const { return output_.get(); }
  int messages() const { return messages_.get(); }
  void signal(int number) const;
  /// Takes note of the processes that it has started by now: once it has ended, the system no longer tells.
  void watch_children();
  /// Kills it and what it has started, also where it has ended by itself and left them: an ssh to a host that no longer
  /// answers would wait for minutes. Of a process that has ended, those of which note was taken.
  void kill_with_children();
  /// Whether it is stopped, as by SIGSTOP.
  bool stopped() const;
  /// Whether it has ended. From then on exit_code() may be called.
  bool ended();
  /// As a shell gives it: the exit code, or 128 + the signal that ended it.
  int exit_code() const;
  /// Whether it was a signal that ended it. Only once it has ended.
  bool was_killed() const;

 private:
  pid_t pid_;
  Descriptor output_;
  Descriptor messages_;
  std::optional<int> status_;
  std::vector<ProcessWatch> children_;
};

}  // namespace lockstep::launcher
