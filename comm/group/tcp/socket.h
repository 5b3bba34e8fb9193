// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/descriptor.h"

namespace lockstep::comm {

/// A connection or a place that takes connections. Never blocks: poll() says when there is something to do.
class Socket {
 public:
  using Clock = std::chrono::steady_clock;

  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_.get(); }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  /// The port that a listening socket has.
  std::uint16_t port() const;

  /// The numeric addresses of a connection's two ends; empty within this process.
  std::string own_address() const;
  std::string peer_address() const;

  /// Bytes sent or received, 0 where it would block; -1 once the connection is gone.
  std::ptrdiff_t send(const void* data, std::size_t bytes) const;
  /// The same where another send() follows at once, so that one packet can carry both.
  std::ptrdiff_t send_first(const void* data, std::size_t bytes) const;
  std::ptrdiff_t receive(void* data, std::size_t bytes) const;
  /// All of it, or false where the connection is gone or time is up.
  bool send_all(const void* data, std::size_t bytes, Clock::time_point end) const;
  bool receive_all(void* data, std::size_t bytes, Clock::time_point end) const;
  /// Why an attempt to connect has failed; 0 where it has not, once the socket is ready to send.
  int connect_error() const;
  /// Ends the connection for both sides: their waits end with an error.
  void shut_down() const;
  /// Ends the connection for the other side, which may still send.
  void end_sending() const;

  /// A connection that waits; none where there is none.
  Socket accept() const;

 private:
  Descriptor descriptor_;
};

/// Takes connections at `port` (0: any), from this machine only or from everywhere, over IPv6 and IPv4. None where the
/// port is taken, with errno. Throws EnvironmentError where the machine has no network.
Socket listen_at(std::uint16_t port, bool this_machine_only);

/// The same at one address of this machine alone. Throws EnvironmentError where it is none.
Socket listen_at(const std::string& address, std::uint16_t port);

/// Makes sure that this process may open `connections` more connections, of which `what` names the purpose. Throws
/// EnvironmentError where the limit on open files is too low.
void allow_connections(int connections, const std::string& what);

/// The number of this machine at which listen_at() takes connections from it only.
std::string loopback_address();

/// A connection to the port at `address`, a name or number of either family. None until `end`, with the reason.
Socket connect_to(const std::string& address, std::uint16_t port, Socket::Clock::time_point end, std::string& reason);

/// Attempts to connect to the port at each number that `address` has; each is ready to send once it has come to an end.
/// Empty, with the reason, where `address` has none.
std::vector<Socket> begin_connecting(const std::string& address, std::uint16_t port, std::string& reason);

/// The two ends of a connection inside this process.
std::pair<Socket, Socket> connected_pair();

}  // namespace lockstep::comm
