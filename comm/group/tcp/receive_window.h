// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// The limit of the bytes that may be on their way to this end of a direct connection. All other ranks send to this one
/// at the same time. A congestion control that learns from losses alone (cubic, Linux's default; reno) lets each
/// connection grow until a switch drops frames. Then all ranks wait for the bytes that are sent again: a sum between
/// four hosts at 1 Gbit/s took more than twice as long. So such connections begin with a small window. Where it holds
/// up a path that is fast and long, the system chooses the window again, for good. A connection to the only other rank
/// is left alone, and so is one with BBR, which keeps queues short by itself.
class ReceiveWindow {
 public:
  /// The most that Linux grants by default (net.core.rmem_max). It carries 10 Gbit/s over a round trip of 0.17 ms.
  static constexpr std::int64_t kMostBytes = 208 * 1024;
  static constexpr std::int64_t kLeastBytes = 32 * 1024;
  /// The sum over a rank's connections. Linux allows up to twice as much, which the 1 MiB of a small switch's port
  /// holds. Beyond 16 connections kLeastBytes exceeds it.
  static constexpr std::int64_t kBytesOfRank = 512 * 1024;
  /// A shorter exchange does not show what the path carries: bytes that wait in this system's buffer come faster.
  static constexpr std::int64_t kLeastWindows = 8;

  /// One of the `connections` of a rank to `others`.
  ReceiveWindow(const Socket& connection, std::size_t connections, std::size_t others);

  /// After an exchange in which `bytes` came in `time`: leaves the window to the system where it is too small.
  void review(const Socket& connection, std::int64_t bytes, std::chrono::nanoseconds time);
  /// The window's limit; 0 where the system chooses the window.
  std::int64_t bytes() const { return bytes_; }

  /// Whether the window may hold up a path that carried `bytes` in `time`: half a window or more came in each
  /// `round_trip`, the least one, which no queue lengthens.
  bool is_too_small(std::int64_t bytes, std::chrono::nanoseconds time, std::chrono::nanoseconds round_trip) const;

 private:
  std::int64_t bytes_ = 0;
  /// Since the connection was made. The system forgets it after minutes; behind a queue that never empties it would
  /// then report a longer one.
  std::chrono::microseconds least_round_trip_ = std::chrono::microseconds::max();
};

}  // namespace lockstep::comm
