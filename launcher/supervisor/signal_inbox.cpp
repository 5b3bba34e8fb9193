// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/signal_inbox.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "runtime/base/error.h"

namespace lockstep::launcher {

SignalInbox::SignalInbox() {
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, as some parents leave it, a child's end is not told
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGWINCH}) {
    // A signal that was ignored, as by nohup, would come all the same once it is blocked.
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  sigprocmask(SIG_BLOCK, &signals, &previous_);
  descriptor_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_) throw EnvironmentError("cannot wait for signals: " + std::generic_category().message(errno));
}

SignalInbox::~SignalInbox() { sigprocmask(SIG_SETMASK, &previous_, nullptr); }

int SignalInbox::take() const {
  signalfd_siginfo info;
  return read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

}  // namespace lockstep::launcher
