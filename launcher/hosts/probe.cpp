// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/probe.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <stop_token>
#include <thread>

#include "comm/group/tcp/socket.h"

namespace lockstep::launcher {

using comm::Socket;
using Clock = Socket::Clock;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kProbeLimit{2000};
constexpr milliseconds kStreaming{300};
constexpr milliseconds kLookAround{50};
constexpr int kPings = 21;
constexpr std::size_t kPiece = std::size_t{64} << 10;

// The words of a probe: the target answers a ping with itself, and the end of a stream with kDrained.
constexpr char kPing = 'p';
constexpr char kStream = 's';
constexpr char kDrained = 'd';

void serve(const Socket& connection, std::uint64_t id) {
  const Clock::time_point end = Clock::now() + 2 * kProbeLimit;
  if (!connection.send_all(&id, sizeof id, end)) return;
  for (char word = 0; connection.receive_all(&word, 1, end);) {
    if (word == kPing) {
      connection.send_all(&word, 1, end);
      continue;
    }
    std::vector<char> piece(kPiece);
    while (connection.receive_all(piece.data(), piece.size(), end)) {
    }
    connection.send_all(&kDrained, 1, end);
    return;
  }
}

struct Probing {
  Socket socket;
  std::string reason;
};

Probing probe(const ProbeAddress& target, Clock::time_point end) {
  Probing found;
  found.socket = comm::connect_to(target.address, target.port, end, found.reason);
  if (!found.socket) return found;
  std::uint64_t id = 0;
  if (!found.socket.receive_all(&id, sizeof id, end)) {
    found.reason = "it connects, and no answer comes";
  } else if (id != target.id) {
    found.reason = "another host or program answers there";
  } else {
    found.reason.clear();
  }
  return found;
}

int path_mtu(const Socket& socket) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (getsockopt(socket.descriptor(), IPPROTO_IP, IP_MTU, &mtu, &length) == 0) return mtu;
  length = sizeof mtu;
  return getsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_MTU, &mtu, &length) == 0 ? mtu : 0;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

class ProbeTarget::Threads {
 public:
  Threads() : listener_(comm::listen_at(0, false)) {
    getrandom(&id_, sizeof id_, 0);
    accepting_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
  }

  std::uint16_t port() const { return listener_.port(); }
  std::uint64_t id() const { return id_; }

 private:
  void accept(const std::stop_token& stop) {
    std::list<std::jthread> serving;
    while (!stop.stop_requested()) {
      pollfd watched{listener_.descriptor(), POLLIN, 0};
      poll(&watched, 1, static_cast<int>(kLookAround.count()));
      if (Socket connection = listener_.accept()) {
        serving.emplace_back([this, connection = std::move(connection)] { serve(connection, id_); });
      }
    }
  }

  Socket listener_;
  std::uint64_t id_ = 0;
  std::jthread accepting_;
};

ProbeTarget::ProbeTarget() : threads_(std::make_unique<Threads>()) {}
ProbeTarget::~ProbeTarget() = default;
std::uint16_t ProbeTarget::port() const { return threads_->port(); }
std::uint64_t ProbeTarget::id() const { return threads_->id(); }

std::string unreachable(const ProbeAddress& target) { return probe(target, Clock::now() + kProbeLimit).reason; }

LinkSpeed measure(const ProbeAddress& target) {
  const Clock::time_point end = Clock::now() + kProbeLimit;
  const Probing found = probe(target, end);
  LinkSpeed speed{.reason = found.reason};
  if (!speed.reason.empty()) return speed;
  std::array<double, kPings> times{};
  for (double& time : times) {
    const Clock::time_point begin = Clock::now();
    char word = kPing;
    if (!found.socket.send_all(&word, 1, end) || !found.socket.receive_all(&word, 1, end)) {
      speed.reason = "it connects, and then carries nothing";
      return speed;
    }
    time = seconds_since(begin);
  }
  std::ranges::nth_element(times, times.begin() + kPings / 2);
  speed.latency_us = times[kPings / 2] / 2 * 1e6;

  const std::vector<char> piece(kPiece, 'x');
  const Clock::time_point begin = Clock::now();
  double bytes = 0;
  bool carries = found.socket.send_all(&kStream, 1, end);
  while (carries && Clock::now() < begin + kStreaming) {
    carries = found.socket.send_all(piece.data(), piece.size(), end);
    bytes += static_cast<double>(piece.size());
  }
  found.socket.end_sending();
  char word = 0;
  if (!carries || !found.socket.receive_all(&word, 1, end) || word != kDrained) {
    speed.reason = "short messages pass, long ones do not";
    return speed;
  }
  speed.mbit_per_s = bytes * 8 / seconds_since(begin) / 1e6;
  speed.mtu = path_mtu(found.socket);
  return speed;
}

}  // namespace lockstep::launcher
