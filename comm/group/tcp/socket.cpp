// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/open_files.h"

namespace lockstep::comm {

namespace {

using Clock = Socket::Clock;

constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;
// A machine that vanishes without a word is found out after half a minute of silence.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 4;
/// Files that the rest of the process may open later.
constexpr std::size_t kOtherDescriptors = 64;

std::string text_of(int error) { return std::generic_category().message(error); }

void set_option(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof value);
}

/// Small messages leave at once, and a peer that is silent for long is asked whether it is there.
void prepare_connection(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

/// Whether the socket is ready for `events` before `end`.
bool wait_for(int descriptor, short events, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd watched{descriptor, events, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/// The result of send() or recv(), as Socket returns it.
std::ptrdiff_t outcome(std::ptrdiff_t moved) {
  if (moved >= 0) return moved;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

Socket listen_as(int family, const sockaddr* address, socklen_t length) {
  Socket listener(socket(family, SOCK_STREAM | kFlags, 0));
  if (!listener) return {};
  set_option(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) set_option(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(listener.descriptor(), address, length) != 0) return {};
  if (listen(listener.descriptor(), kBacklog) != 0) return {};
  return listener;
}

Socket listen_in(int family, std::uint16_t port, bool this_machine_only) {
  sockaddr_storage address{};
  socklen_t length = 0;
  if (family == AF_INET6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    any.sin6_addr = this_machine_only ? in6addr_loopback : in6addr_any;
    std::memcpy(&address, &any, length = sizeof any);
  } else {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port);
    any.sin_addr.s_addr = htonl(this_machine_only ? INADDR_LOOPBACK : INADDR_ANY);
    std::memcpy(&address, &any, length = sizeof any);
  }
  return listen_as(family, reinterpret_cast<const sockaddr*>(&address), length);
}

/// The numbers that `address`, a name or a number, has for TCP; null, with the reason, where it has none.
std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> numbers_of(const std::string& address, std::uint16_t port,
                                                              std::string& reason) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (unknown != 0) reason = gai_strerror(unknown);
  return {unknown == 0 ? found : nullptr, &freeaddrinfo};
}

using AddressOf = int(int, sockaddr*, socklen_t*);

std::string numeric_address(int descriptor, AddressOf* address_of) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (address_of(descriptor, plain, &length) != 0 || address.ss_family == AF_UNIX) return "";
  char text[NI_MAXHOST] = {};
  return getnameinfo(plain, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

}  // namespace

std::string Socket::own_address() const { return numeric_address(descriptor(), getsockname); }

std::string Socket::peer_address() const { return numeric_address(descriptor(), getpeername); }

std::uint16_t Socket::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  in_port_t port = 0;  // at the same place in both families
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

std::ptrdiff_t Socket::send(const void* data, std::size_t bytes) const {
  return outcome(::send(descriptor(), data, bytes, MSG_NOSIGNAL));
}

std::ptrdiff_t Socket::send_first(const void* data, std::size_t bytes) const {
  return outcome(::send(descriptor(), data, bytes, MSG_NOSIGNAL | MSG_MORE));
}

std::ptrdiff_t Socket::receive(void* data, std::size_t bytes) const {
  const std::ptrdiff_t moved = recv(descriptor(), data, bytes, 0);
  return moved == 0 && bytes > 0 ? -1 : outcome(moved);
}

bool Socket::send_all(const void* data, std::size_t bytes, Clock::time_point end) const {
  for (const char* next = static_cast<const char*>(data); bytes > 0;) {
    const std::ptrdiff_t sent = send(next, bytes);
    if (sent < 0 || (sent == 0 && !wait_for(descriptor(), POLLOUT, end))) return false;
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool Socket::receive_all(void* data, std::size_t bytes, Clock::time_point end) const {
  for (char* next = static_cast<char*>(data); bytes > 0;) {
    const std::ptrdiff_t received = receive(next, bytes);
    if (received < 0 || (received == 0 && !wait_for(descriptor(), POLLIN, end))) return false;
    next += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

int Socket::connect_error() const {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void Socket::shut_down() const { shutdown(descriptor(), SHUT_RDWR); }

void Socket::end_sending() const { shutdown(descriptor(), SHUT_WR); }

Socket Socket::accept() const {
  Socket connection(accept4(descriptor(), nullptr, nullptr, kFlags));
  if (connection) prepare_connection(connection.descriptor());
  return connection;
}

Socket listen_at(std::uint16_t port, bool this_machine_only) {
  // On the machine itself IPv4 is always there; from outside, one IPv6 socket serves both families.
  const std::array<int, 2> families = this_machine_only ? std::array{AF_INET, AF_INET6} : std::array{AF_INET6, AF_INET};
  for (const int family : families) {
    if (Socket listener = listen_in(family, port, this_machine_only)) return listener;
    if (errno == EADDRINUSE || errno == EACCES) return {};
  }
  throw EnvironmentError("cannot take connections from the other ranks: " + text_of(errno),
                         "Give this process a network, if only the loopback interface.");
}

Socket listen_at(const std::string& address, std::uint16_t port) {
  std::string reason;
  const auto found = numbers_of(address, port, reason);
  Socket listener = found ? listen_as(found->ai_family, found->ai_addr, found->ai_addrlen) : Socket();
  if (listener || (found && (errno == EADDRINUSE || errno == EACCES))) return listener;
  throw EnvironmentError(
      fmt::format("cannot take connections of other ranks at {}: {}", address, found ? text_of(errno) : reason));
}

void allow_connections(int connections, const std::string& what) {
  allow_open_files(static_cast<std::size_t>(connections) + kOtherDescriptors, what,
                   ", or start the ranks with mpirun.");
}

std::string loopback_address() {
  const bool has_ipv4 = listen_in(AF_INET, 0, true) || errno == EADDRINUSE || errno == EACCES;
  return has_ipv4 ? "127.0.0.1" : "::1";
}

std::vector<Socket> begin_connecting(const std::string& address, std::uint16_t port, std::string& reason) {
  const auto addresses = numbers_of(address, port, reason);
  std::vector<Socket> attempts;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Socket attempt(socket(each->ai_family, SOCK_STREAM | kFlags, 0));
    if (!attempt || (connect(attempt.descriptor(), each->ai_addr, each->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      reason = text_of(errno);
      continue;
    }
    prepare_connection(attempt.descriptor());
    attempts.push_back(std::move(attempt));
  }
  return attempts;
}

Socket connect_to(const std::string& address, std::uint16_t port, Clock::time_point end, std::string& reason) {
  for (Socket& attempt : begin_connecting(address, port, reason)) {
    const int error = wait_for(attempt.descriptor(), POLLOUT, end) ? attempt.connect_error() : ETIMEDOUT;
    if (error == 0) return std::move(attempt);
    reason = text_of(error);
  }
  return {};
}

std::pair<Socket, Socket> connected_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | kFlags, 0, ends) != 0) {
    throw EnvironmentError("cannot connect this process with itself: " + text_of(errno),
                           "Raise the limit on open files: ulimit -n.");
  }
  return {Socket(ends[0]), Socket(ends[1])};
}

}  // namespace lockstep::comm
