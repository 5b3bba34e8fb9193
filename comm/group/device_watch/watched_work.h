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
  /// Finds out what the device has done so far. May block: a driver lets no thread ask while another one waits for the
  /// device inside it, as in cudaFree.
  virtual void look() = 0;
  /// Throws PeerError where the communicator has failed, or what is on its way waits for a rank that does not come, as
  /// far as look() has found out, however long it takes. Beside look(), and without a call of the device's driver.
  virtual void inspect() = 0;
  /// Breaks off what is on its way and gives the communicator back. What is returned keeps what it needs, and does
  /// nothing where the communicator is gone. The call may block: until the others that the watchdog breaks off have
  /// been called too, whose kernels may stand before its own, and until no graph refers to the communicator.
  virtual std::function<void()> abort() = 0;
};

}  // namespace lockstep::comm
