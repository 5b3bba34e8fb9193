// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/rendezvous.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/group/launcher_variables.h"
#include "comm/group/liveness/peer_errors.h"
#include "comm/group/tcp/search.h"
#include "runtime/base/hash.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

using Clock = Socket::Clock;

constexpr int kFirstPort = 1024;
constexpr int kLastPort = 65535;
/// How long rank 0 waits for a port: a connection that came to nothing may hold it for a moment.
constexpr auto kListening = std::chrono::seconds(2);
constexpr auto kNap = std::chrono::milliseconds(20);

int port_in(const char* name) {
  const int port = integer_in(name);
  if (port >= 1 && port <= kLastPort) return port;
  throw UsageError(fmt::format("environment variable {} is {}, which is no port", name, port),
                   "A port is between 1 and 65535.");
}

std::vector<std::uint16_t> ports_from(int first) {
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < TcpRendezvous::kPorts; ++i) {
    const int port = first + i > kLastPort ? first + i - kLastPort - 1 + kFirstPort : first + i;
    ports.push_back(static_cast<std::uint16_t>(port));
  }
  return ports;
}

/// The same of all ranks of a run, and of no other's. A digest, since LOCKSTEP_SECRET is in it.
std::string name_of_run(int master_port) {
  std::string name = std::to_string(master_port);
  for (const char* variable : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "LOCKSTEP_SECRET"}) {
    name += '/';
    if (is_set(variable)) name += text_in(variable);
  }
  // The folder in which torchrun on a single node keeps what ranks report: it tells apart runs that nobody has named.
  if (is_set("TORCHELASTIC_ERROR_FILE") && is_set("GROUP_WORLD_SIZE") && integer_in("GROUP_WORLD_SIZE") == 1) {
    const std::filesystem::path of_rank = std::filesystem::path(text_in("TORCHELASTIC_ERROR_FILE")).parent_path();
    name += '/' + of_rank.parent_path().string();
  }
  return hash128_of(name);
}

}  // namespace

TcpRendezvous TcpRendezvous::from_environment(const LaunchEnvironment& environment) {
  TcpRendezvous where;
  const std::string address = text_in("MASTER_ADDR");
  const int master_port = port_in("MASTER_PORT");
  if (environment.local_size < environment.size) where.address = address;
  if (is_set("LOCKSTEP_MASTER_PORT")) {
    where.ports = {static_cast<std::uint16_t>(port_in("LOCKSTEP_MASTER_PORT"))};
  } else {
    const bool taken = is_set("TORCHELASTIC_USE_AGENT_STORE") && text_in("TORCHELASTIC_USE_AGENT_STORE") == "True";
    where.ports = ports_from(master_port + (taken ? 1 : 0));
  }
  where.run = name_of_run(master_port);
  return where;
}

std::string TcpRendezvous::str() const {
  const std::string machine = address.empty() ? "this machine" : address;
  return ports.size() == 1 ? fmt::format("{}, port {}", machine, ports.front())
                           : fmt::format("{}, port {} to {}", machine, ports.front(), ports.back());
}

Socket TcpRendezvous::listen() const {
  const auto end = Clock::now() + kListening;
  int error = 0;
  do {
    for (const std::uint16_t port : ports) {
      if (Socket listener = listen_at(port, address.empty())) return listener;
      error = errno;
    }
    std::this_thread::sleep_for(kNap);
  } while (Clock::now() < end);
  throw EnvironmentError("rank 0 cannot take connections at " + str() + ": " + std::generic_category().message(error),
                         "Choose another MASTER_PORT (torchrun --master-port), or name a free port of rank 0's machine "
                         "in LOCKSTEP_MASTER_PORT, the same on every rank.");
}

TcpRendezvous::Joined TcpRendezvous::join(const Hello& hello, std::chrono::milliseconds timeout) const {
  const auto end = Clock::now() + timeout;
  std::vector<std::pair<std::string, std::uint16_t>> places;
  for (const std::uint16_t port : ports) {
    for (const char* host : {"127.0.0.1", "::1"}) {
      if (address.empty()) places.emplace_back(host, port);
    }
    if (!address.empty()) places.emplace_back(address, port);
  }
  HubSearch search(std::move(places), hello);
  std::string other_run;
  while (std::optional<Joined> joined = search.next(end)) {
    if (joined->welcome.answer == Welcome::Answer::kWelcome) return *std::move(joined);
    if (joined->welcome.answer == Welcome::Answer::kRefused) {
      throw EnvironmentError(fmt::format("rank 0 refuses rank {}: {}", hello.rank, joined->welcome.reason.str()),
                             "Start every rank with the same program and WORLD_SIZE, and with a RANK of its own.");
    }
    other_run = joined->welcome.reason.str();
  }
  const PeerError error = late("start of the run at " + str(), "rank 0", timeout);
  throw PeerError(
      error.what() + (" (" + (other_run.empty() ? search.reason() : other_run) + ")"),
      "Look for an error of rank 0. It must be reachable there: see MASTER_ADDR, MASTER_PORT and firewalls; "
      "LOCKSTEP_MASTER_PORT names a port that is open.");
}

}  // namespace lockstep::comm
