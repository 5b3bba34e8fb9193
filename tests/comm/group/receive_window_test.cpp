// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/receive_window.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

/// Two ends of a TCP connection of this machine; the second learns from losses, as by default on Linux.
std::pair<Socket, Socket> tcp_pair() {
  const Socket listener = listen_at(0, true);
  std::string reason;
  Socket caller = connect_to(loopback_address(), listener.port(), Socket::Clock::now() + 10s, reason);
  EXPECT_TRUE(caller) << reason;
  Socket taken = listener.accept();
  EXPECT_TRUE(taken);
  EXPECT_EQ(setsockopt(taken.descriptor(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
  return {std::move(caller), std::move(taken)};
}

int option(const Socket& connection, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  EXPECT_EQ(getsockopt(connection.descriptor(), level, name, &value, &length), 0);
  return value;
}

bool has_fixed_buffer(const Socket& connection) {
  constexpr int kLockOfReceiving = 2;  // SOCK_RCVBUF_LOCK of <linux/socket.h>
  return (option(connection, SOL_SOCKET, SO_BUF_LOCK) & kLockOfReceiving) != 0;
}

/// Linux before 5.14 does not take a buffer back; qemu does not tell round trips.
bool gives_windows_back(const Socket& connection) {
  int lock = 0;
  socklen_t length = sizeof lock;
  if (getsockopt(connection.descriptor(), SOL_SOCKET, SO_BUF_LOCK, &lock, &length) != 0) return false;
  char info[512];
  length = sizeof info;
  return getsockopt(connection.descriptor(), IPPROTO_TCP, TCP_INFO, info, &length) == 0 && length >= 152;
}

TEST(ReceiveWindow, IsSmallWhereSeveralRanksSend) {
  const auto [caller, taken] = tcp_pair();
  const ReceiveWindow window(taken, 8, 4);
  EXPECT_EQ(window.bytes(), ReceiveWindow::kBytesOfRank / 8);
  // Linux doubles what it is asked for.
  EXPECT_EQ(option(taken, SOL_SOCKET, SO_RCVBUF), 2 * window.bytes());
  EXPECT_EQ(option(taken, IPPROTO_TCP, TCP_WINDOW_CLAMP), 2 * window.bytes());
}

TEST(ReceiveWindow, HasALeastAndAMost) {
  const auto [caller, taken] = tcp_pair();
  EXPECT_EQ(ReceiveWindow(taken, 2, 2).bytes(), ReceiveWindow::kMostBytes);
  EXPECT_EQ(ReceiveWindow(taken, 1000, 1000).bytes(), ReceiveWindow::kLeastBytes);
}

TEST(ReceiveWindow, LeavesAConnectionToTheOnlyOtherRankAlone) {
  const auto [caller, taken] = tcp_pair();
  const int before = option(taken, SOL_SOCKET, SO_RCVBUF);
  EXPECT_EQ(ReceiveWindow(taken, 4, 1).bytes(), 0);
  EXPECT_EQ(option(taken, SOL_SOCKET, SO_RCVBUF), before);
}

TEST(ReceiveWindow, LeavesBbrAlone) {
  const auto [caller, taken] = tcp_pair();
  if (setsockopt(taken.descriptor(), IPPROTO_TCP, TCP_CONGESTION, "bbr", 3) != 0) GTEST_SKIP() << "no BBR here";
  const int before = option(taken, SOL_SOCKET, SO_RCVBUF);
  EXPECT_EQ(ReceiveWindow(taken, 3, 3).bytes(), 0);
  EXPECT_EQ(option(taken, SOL_SOCKET, SO_RCVBUF), before);
}

TEST(ReceiveWindow, LeavesWhatIsNoTcpAlone) {
  const auto [a, b] = connected_pair();
  EXPECT_EQ(ReceiveWindow(a, 3, 3).bytes(), 0);
}

TEST(ReceiveWindow, IsTooSmallWhereHalfOfItCameInEachRoundTrip) {
  const auto [caller, taken] = tcp_pair();
  const ReceiveWindow window(taken, 2, 2);
  const std::int64_t bytes = 100 * window.bytes();
  // 100 windows in 10 ms: one in 0.1 ms.
  EXPECT_TRUE(window.is_too_small(bytes, 10ms, 100us));
  EXPECT_TRUE(window.is_too_small(bytes, 10ms, 50us));
  EXPECT_FALSE(window.is_too_small(bytes, 10ms, 49us));
  EXPECT_FALSE(window.is_too_small(bytes, 10ms, 0us));
}

TEST(ReceiveWindow, IsTheSystemsAgainWhereItIsTooSmall) {
  const auto [caller, taken] = tcp_pair();
  if (!gives_windows_back(taken)) GTEST_SKIP() << "this system does not give a window back";
  EXPECT_TRUE(caller.send_all("x", 1, Socket::Clock::now() + 10s));
  EXPECT_TRUE(taken.send_all("x", 1, Socket::Clock::now() + 10s));
  char byte;
  EXPECT_TRUE(caller.receive_all(&byte, 1, Socket::Clock::now() + 10s));
  ReceiveWindow window(taken, 2, 2);
  window.review(taken, 8 * window.bytes(), 1h);
  EXPECT_TRUE(has_fixed_buffer(taken)) << "a path that carries little";
  window.review(taken, ReceiveWindow::kLeastWindows * window.bytes() - 1, 1ns);
  EXPECT_TRUE(has_fixed_buffer(taken)) << "an exchange that shows nothing";
  window.review(taken, ReceiveWindow::kLeastWindows * window.bytes(), 1ns);
  EXPECT_FALSE(has_fixed_buffer(taken));
  EXPECT_EQ(window.bytes(), 0);
}

}  // namespace
}  // namespace lockstep::comm
