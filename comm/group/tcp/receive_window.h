// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// How much of a direct connection may be on its way to this end. All other ranks send to this one at the same time,
/// and a system that learns from losses alone (cubic, Linux's default; reno) lets each connection grow until a switch
/// drops what it cannot hold. Then all wait for the rank whose bytes are sent again: a sum between four hosts at 1
/// Gbit/s took more than twice as long. So such connections begin with a small window. Where it holds up a path that is
/// fast and long, the system gets the window back, for good. A connection to the only other rank, and BBR, which keeps
/// queues short by itself, are left alone.
class ReceiveWindow {
 public:
  /// The most that Linux grants to every process (net.core.rmem_max): 10 Gbit/s over a path of 0.17 ms there and back.
  static constexpr std::int64_t kMostBytes = 208 * 1024;
  static constexpr std::int64_t kLeastBytes = 32 * 1024;
  /// Of all connections of a rank. Linux holds them to up to twice as much: a port of a small switch has a megabyte.
  static constexpr std::int64_t kBytesOfRank = 512 * 1024;
  /// An exchange of fewer windows tells nothing: what waited for its reader comes faster than the path carries.
  static constexpr std::int64_t kLeastWindows = 8;

  /// One of the `connections` of a rank to `others`.
  ReceiveWindow(const Socket& connection, std::size_t connections, std::size_t others);

  /// Takes note that `bytes` came in `time`.
  void review(const Socket& connection, std::int64_t bytes, std::chrono::nanoseconds time);
  /// What it is held to; 0 where the system has it.
  std::int64_t bytes() const { return bytes_; }

  /// Whether it may hold up a path that carried `bytes` in `time`: half a window or more came in each `round_trip`, the
  /// time there and back while nothing queues.
  bool is_too_small(std::int64_t bytes, std::chrono::nanoseconds time, std::chrono::nanoseconds round_trip) const;

 private:
  std::int64_t bytes_ = 0;
  /// Ever: the system forgets after minutes, and then takes the time in a queue that was never empty for it.
  std::chrono::microseconds least_round_trip_ = std::chrono::microseconds::max();
};

}  // namespace lockstep::comm
