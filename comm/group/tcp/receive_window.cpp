// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/receive_window.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

namespace lockstep::comm {

namespace {

/// TCP_INFO of Linux 4.9 and later. The C library declares its first part alone; <linux/tcp.h>, which declares all of
/// it, cannot be included beside the C library's header.
struct WholeTcpInfo {
  tcp_info first;
  std::uint64_t pacing_rate, most_pacing_rate, bytes_acked, bytes_received;
  std::uint32_t segments_out, segments_in, bytes_not_sent, least_round_trip_us;
};
static_assert(offsetof(WholeTcpInfo, least_round_trip_us) == 148);

bool set_option(const Socket& connection, int level, int name, int value) {
  return setsockopt(connection.descriptor(), level, name, &value, sizeof value) == 0;
}

/// The connection's least round trip of the last minutes. It is 0 on a system that does not report it. The handshake
/// has set it before an exchange begins.
std::chrono::microseconds least_round_trip(const Socket& connection) {
  WholeTcpInfo info{};
  socklen_t length = sizeof info;
  const bool known = getsockopt(connection.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
  return std::chrono::microseconds(known ? info.least_round_trip_us : 0);
}

bool learns_from_losses(const Socket& connection) {
  char name[16] = {};
  socklen_t length = sizeof name - 1;
  if (getsockopt(connection.descriptor(), IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return false;
  return !std::string_view(name).starts_with("bbr");
}

}  // namespace

ReceiveWindow::ReceiveWindow(const Socket& connection, std::size_t connections, std::size_t others) {
  if (others < 2 || !learns_from_losses(connection)) return;
  bytes_ = std::clamp(kBytesOfRank / static_cast<std::int64_t>(connections), kLeastBytes, kMostBytes);
  set_option(connection, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes_));
  // Linux doubles the buffer, to hold its own records beside the bytes. It enlarges the window of some connections with
  // it, and that of others not: then the slower connections hold up all ranks. So the window's limit is set as well.
  set_option(connection, IPPROTO_TCP, TCP_WINDOW_CLAMP, static_cast<int>(2 * bytes_));
}

bool ReceiveWindow::is_too_small(std::int64_t bytes, std::chrono::nanoseconds time,
                                 std::chrono::nanoseconds round_trip) const {
  const double per_round_trip =
      static_cast<double>(bytes) * static_cast<double>(round_trip.count()) / static_cast<double>(time.count());
  return per_round_trip >= static_cast<double>(bytes_) / 2;
}

void ReceiveWindow::review(const Socket& connection, std::int64_t bytes, std::chrono::nanoseconds time) {
  if (bytes_ == 0 || bytes < kLeastWindows * bytes_) return;
  least_round_trip_ = std::min(least_round_trip_, least_round_trip(connection));
  if (!is_too_small(bytes, time, least_round_trip_)) return;
  // Linux before 5.14 refuses, and the window stays small.
  if (set_option(connection, SOL_SOCKET, SO_BUF_LOCK, 0)) bytes_ = 0;
}

}  // namespace lockstep::comm
