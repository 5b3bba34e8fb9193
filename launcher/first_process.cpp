// SPDX-License-Identifier: Apache-2.0
#include "launcher/first_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace lockstep::launcher {

namespace {

/// Reaps all children that have ended. Returns the exit code of `child`, as a shell gives it, if it is among them.
std::optional<int> reap(pid_t child) {
  std::optional<int> code;
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == child) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code;
}

/// Makes the child the foreground group: a terminal then signals it directly, and process 1 does not signal it again.
void take_terminal() {
  setpgid(0, 0);
  if (isatty(STDIN_FILENO) != 0) tcsetpgrp(STDIN_FILENO, getpid());
}

}  // namespace

std::optional<int> serve_as_first_process() {
  if (getpid() != 1) return std::nullopt;
  // The kernel drops a signal that process 1 neither handles nor blocks: unless it is blocked, SIGTERM does nothing.
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = fork();
  if (child < 0) throw EnvironmentError("cannot start a process: " + std::generic_category().message(errno));
  if (child == 0) {
    take_terminal();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return std::nullopt;
  }
  while (true) {
    const int number = sigwaitinfo(&all, nullptr);
    if (number == SIGCHLD) {
      if (const auto code = reap(child)) return code;
    } else if (number > 0) {
      signal_child(child, number);
    }
  }
}

}  // namespace lockstep::launcher
