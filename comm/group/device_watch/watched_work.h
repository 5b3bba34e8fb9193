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
  /// Finds out what the device has done so far. May block: while one thread waits for the device inside the driver, as
  /// in cudaFree, the driver answers no other thread.
  virtual void look() = 0;
  /// Throws PeerError where the communicator has failed or its work waits for a rank that does not come. Goes by what
  /// look() has found out, however long look() takes. May run beside look(); never calls the device's driver.
  virtual void inspect() = 0;
  /// Returns a function that aborts the work on its way and frees the communicator. The function owns what it needs,
  /// and does nothing where the communicator is gone. It may block: until the watchdog has called its other aborts too,
  /// whose kernels may stand before this one's, and until no graph refers to the communicator.
  virtual std::function<void()> abort() = 0;
};

}  // namespace lockstep::comm
