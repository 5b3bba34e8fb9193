// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "comm/group/communicator.h"
#include "comm/group/operation.h"

namespace lockstep::comm {

// How ranks that wait for each other on their devices find the rank that is missing: NCCL's communicator watches its
// unfinished operations, and asks the hosts' communicator who waits where.

/// The watch over a communicator whose collectives run on a device.
class LaunchWatch {
 public:
  virtual ~LaunchWatch() = default;
  /// Calls `launch`, which appends work to `stream` in which ranks wait for each other without calls of this object: a
  /// captured step that is launched again as step `step`. Every rank does so in the same order. A rank that does not
  /// arrive is found out as in a collective.
  virtual void watch(const Stream& stream, std::uint64_t step, const std::function<void()>& launch) = 0;
};

/// LaunchWatch::watch() of a communicator that has one; launch() alone for another, which waits on the host.
void launch_watched(Communicator& communicator, const Stream& stream, std::uint64_t step,
                    const std::function<void()>& launch);

/// Asks a communicator between hosts who waits where.
class WaitInspection {
 public:
  virtual ~WaitInspection() = default;
  /// For the watchdog of collectives that run on a device: this rank has waited for so long in its operation `number`.
  /// Tells the other ranks so, and does not wait for them. Throws PeerError naming the ranks that will never arrive,
  /// or, once the timeout has passed, those that do not wait there too. Thread-safe.
  virtual void inspect(const Operation& operation, std::int64_t number, std::chrono::milliseconds waited) = 0;
};

/// WaitInspection::inspect() of the hosts' communicator; nothing for a lone rank, which waits for nobody.
void inspect_wait(Communicator& host, const Operation& operation, std::int64_t number,
                  std::chrono::milliseconds waited);

}  // namespace lockstep::comm
