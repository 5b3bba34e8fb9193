// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include "runtime/base/descriptor.h"

namespace lockstep::launcher {

/// While it lives, SIGTERM, SIGINT, SIGHUP, SIGCHLD and SIGWINCH do not act on the process: they are queued for take().
/// At most one exists at a time. Make it before any thread is started.
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  /// For poll(): readable when a signal waits.
  int descriptor() const { return descriptor_.get(); }
  /// The next signal; 0 when none waits.
  int take() const;

 private:
  sigset_t previous_;
  Descriptor descriptor_;
};

}  // namespace lockstep::launcher
