// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "runtime/tensor/device.h"

namespace lockstep::comm {

/// A communicator between devices and what it has on its way, as the watchdog sees it.
class WatchedWork {
 public:
  virtual ~WatchedWork() = default;
  virtual Device device() const = 0;
  /// Throws PeerError where the communicator has failed, or what is on its way waits for a rank that does not come.
  /// Does not wait for the device.
  virtual void inspect() = 0;
  /// Breaks off what is on its way and gives the communicator back. What is returned keeps what it needs, and does
  /// nothing where the communicator is gone. The call may block: until the others that the watchdog breaks off have
  /// been called too, whose kernels may stand before its own, and until no graph refers to the communicator.
  virtual std::function<void()> abort() = 0;
};

}  // namespace lockstep::comm
