// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/rendezvous.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/group/launcher_variables.h"
#include "comm/group/liveness/peer_errors.h"
#include "comm/group/network_choice.h"
#include "comm/group/slurm_step.h"
#include "comm/group/tcp/search.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"

namespace lockstep::comm {

namespace {

using Clock = Socket::Clock;

constexpr int kFirstPort = 1024;
constexpr int kLastPort = 65535;
/// torchrun's where it is given none.
constexpr const char* kNoRunId = "none";
/// Runs that are told no port choose kPorts of the 256 times kPorts behind it, below the ports that systems give to who
/// asks for any.
constexpr int kFirstOfChosen = 20000;
/// How long a rank waits for a port: a connection that came to nothing may hold it for a moment.
constexpr auto kListening = std::chrono::seconds(2);
constexpr auto kBetweenPorts = std::chrono::milliseconds(20);
/// How much earlier a rank calls rank 0 at a better address than at the next one.
constexpr auto kHeadStart = std::chrono::milliseconds(100);
constexpr const char* kSecretVariable = "LOCKSTEP_SECRET";

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

/// Whether torchrun starts all ranks, on one node.
bool on_single_node_of_torchrun() { return is_set("GROUP_WORLD_SIZE") && integer_in("GROUP_WORLD_SIZE") == 1; }

/// The folder in which torchrun on a single node keeps what ranks report: it tells apart runs that nobody has named.
std::string folder_of_torchrun() {
  if (!is_set("TORCHELASTIC_ERROR_FILE") || !on_single_node_of_torchrun()) return "";
  const std::filesystem::path of_rank = std::filesystem::path(text_in("TORCHELASTIC_ERROR_FILE")).parent_path();
  return of_rank.parent_path().string();
}

/// At the first free one of the ports; none, with the error, where all stay taken.
Socket listen_at_first(const std::vector<std::uint16_t>& ports, const TcpRendezvous& where, int& error) {
  const auto end = Clock::now() + kListening;
  do {
    for (const std::uint16_t port : ports) {
      Socket listener =
          where.own_address.empty() ? listen_at(port, where.addresses.empty()) : listen_at(where.own_address, port);
      if (listener) return listener;
      error = errno;
    }
    std::this_thread::sleep_for(kBetweenPorts);
  } while (Clock::now() < end);
  return {};
}

/// The values of the variables, one behind the other, as a part of a run's name. A zero byte, which no value holds,
/// separates them; a variable that is not set counts as empty.
std::string parts(std::initializer_list<const char*> variables) {
  std::string name;
  for (const char* variable : variables) name += '\0' + (is_set(variable) ? text_in(variable) : "");
  return name;
}

/// Which start of its ranks this is for torchrun on a single node. Those of several nodes count apart: each the
/// failures of its own ranks, not the starts for the sake of a node that has come or gone.
std::string restart_of_torchrun() { return on_single_node_of_torchrun() ? parts({"TORCHELASTIC_RESTART_COUNT"}) : ""; }

/// A run as the variables of its launcher describe it.
struct Run {
  std::string address;  ///< rank 0's host
  int port = 0;         ///< the first one at which rank 0 may listen
  std::string name;     ///< the same on all ranks of the run
  bool named = false;   ///< whether no other run has this name
};

Run run_of_torchrun() {
  const std::string address = text_in("MASTER_ADDR");
  const int port = port_in("MASTER_PORT");
  const bool taken = is_set("TORCHELASTIC_USE_AGENT_STORE") && text_in("TORCHELASTIC_USE_AGENT_STORE") == "True";
  const bool has_id = is_set("TORCHELASTIC_RUN_ID") && text_in("TORCHELASTIC_RUN_ID") != kNoRunId;
  const std::string folder = folder_of_torchrun();
  return {.address = address,
          .port = port + (taken ? 1 : 0),
          .name = std::to_string(port) + parts({"TORCHELASTIC_RUN_ID"}) + restart_of_torchrun() + '\0' + folder,
          .named = has_id || !folder.empty()};
}

/// The first of the ports of a run that is told none.
int port_for(const std::string& name) {
  return kFirstOfChosen + sha256(std::as_bytes(std::span(name))).front() * TcpRendezvous::kPorts;
}

/// A step of a job. A job that is started again has its number, and counts its steps anew.
Run run_of_slurm() {
  const std::string name = text_in("SLURM_JOB_ID") + '.' + text_in("SLURM_STEP_ID") + parts({"SLURM_RESTART_COUNT"});
  return {.address = is_set("MASTER_ADDR") ? text_in("MASTER_ADDR") : first_host_of(text_in("SLURM_STEP_NODELIST")),
          .port = is_set("MASTER_PORT") ? port_in("MASTER_PORT") : port_for(name),
          .name = name,
          .named = true};
}

Run run_of(const LaunchEnvironment& environment) {
  return environment.launcher == LaunchEnvironment::Launcher::kSlurm ? run_of_slurm() : run_of_torchrun();
}

RunKey key_of(const std::string& name) {
  const std::string all = name + parts({kSecretVariable});
  return sha256(std::as_bytes(std::span(all)));
}

/// The part that each rank reads from its own environment: the address of LOCKSTEP_INTERFACE and the ports of
/// LOCKSTEP_MASTER_PORT. `ports` is empty where that variable is not set.
TcpRendezvous own_settings(const LaunchEnvironment& environment) {
  TcpRendezvous where;
  if (environment.on_several_hosts()) where.own_address = chosen_address();
  if (is_set("LOCKSTEP_MASTER_PORT")) {
    const int port = port_in("LOCKSTEP_MASTER_PORT");
    where.ports = {static_cast<std::uint16_t>(port)};
    where.direct_ports = ports_from(port + 1);
  }
  return where;
}

}  // namespace

TcpRendezvous TcpRendezvous::from_environment(const LaunchEnvironment& environment) {
  const Run run = run_of(environment);
  TcpRendezvous where = own_settings(environment);
  if (environment.on_several_hosts()) where.addresses = {run.address};
  if (where.ports.empty()) where.ports = ports_from(run.port);
  where.name = run.name;
  where.key = key_of(run.name);
  where.named = run.named || is_set(kSecretVariable);
  return where;
}

TcpRendezvous TcpRendezvous::on_this_host(const LaunchEnvironment& environment) {
  TcpRendezvous where = own_settings(environment);
  if (environment.on_several_hosts()) {
    where.addresses = addresses_of_this_host();
    if (is_set("MASTER_ADDR")) where.addresses.insert(where.addresses.begin(), text_in("MASTER_ADDR"));
    if (where.addresses.empty()) {
      throw EnvironmentError(
          fmt::format("{}, on which rank 0 is, has no address by which other hosts reach it", host_name()),
          "Look at its network interfaces: lockstep doctor --hosts lists them.");
    }
  }
  if (where.ports.empty()) where.ports = {0};
  where.name = fmt::format("{:02x}", fmt::join(fresh_nonce(), ""));
  where.key = key_of(where.name);
  where.named = true;
  return where;
}

TcpRendezvous TcpRendezvous::from_word(const LaunchEnvironment& environment, const std::string& word) {
  TcpRendezvous where = own_settings(environment);
  std::istringstream text(word);
  std::uint16_t port = 0;
  text >> port >> where.name;
  if (!text) {
    throw PeerError("rank 0 says where it is in a way that this rank does not know",
                    "Start every rank with the same program.");
  }
  where.key = key_of(where.name);
  where.ports = {port};
  where.addresses.assign(std::istream_iterator<std::string>(text), {});
  where.named = true;
  return where;
}

std::string TcpRendezvous::word(std::uint16_t port) const {
  return fmt::format("{} {} {}", port, name, fmt::join(addresses, " "));
}

std::string TcpRendezvous::str() const {
  const std::string machine = addresses.empty() ? "this machine" : fmt::format("{}", fmt::join(addresses, " or "));
  return ports.size() == 1 ? fmt::format("{}, port {}", machine, ports.front())
                           : fmt::format("{}, port {} to {}", machine, ports.front(), ports.back());
}

Socket TcpRendezvous::listen() const {
  int error = 0;
  if (Socket listener = listen_at_first(ports, *this, error)) return listener;
  throw EnvironmentError("rank 0 cannot take connections at " + str() + ": " + std::generic_category().message(error),
                         "Choose another MASTER_PORT (torchrun --master-port), or name a free port of rank 0's machine "
                         "in LOCKSTEP_MASTER_PORT, the same on every rank.");
}

Socket TcpRendezvous::listen_to_ranks(int rank) const {
  int error = 0;
  if (Socket listener = listen_at_first(direct_ports, *this, error)) return listener;
  throw EnvironmentError(fmt::format("rank {} cannot take connections of other ranks at port {} to {}: {}", rank,
                                     direct_ports.front(), direct_ports.back(), std::generic_category().message(error)),
                         "Choose another LOCKSTEP_MASTER_PORT, with free ports behind it on every machine.");
}

TcpRendezvous::Joined TcpRendezvous::join(const Hello& hello, std::chrono::milliseconds timeout) const {
  const auto end = Clock::now() + timeout;
  const std::vector<std::string> hosts = addresses.empty() ? std::vector{loopback_address()} : addresses;
  std::vector<HubSearch::Place> places;
  for (const std::string& host : hosts) {
    for (const std::uint16_t port : ports) places.emplace_back(host, port);
  }
  // So that all ranks take the best network that leads there, and a better one does not lose by chance.
  const auto head_start = hosts.size() > 1 ? kHeadStart : std::chrono::milliseconds(0);
  HubSearch search(std::move(places), hello, key, "rank 0", head_start);
  // A hub that does not take this rank may be another run's: rank 0 may listen at the next port, or soon.
  std::map<Welcome::Answer, std::string> reasons;
  const auto has_refused = [&] { return reasons.contains(Welcome::Answer::kRefused); };
  while (!(has_refused() && ports.size() == 1)) {
    std::optional<Joined> joined = search.next(end);
    if (!joined) break;
    const Welcome& welcome = joined->welcome;
    if (welcome.answer == Welcome::Answer::kWelcome) return *std::move(joined);
    if (welcome.answer == Welcome::Answer::kDifferentJob) throw other_job(hello, hello, welcome.reason.str());
    const bool is_new = reasons.emplace(welcome.answer, welcome.reason.str()).second;
    if (is_new && welcome.answer == Welcome::Answer::kOtherJobInPlace) {
      spdlog::warn("{}, which waits for rank {}, passes this rank by: {}", rank_name(welcome.hub, hello), hello.rank,
                   welcome.reason.str());
    }
  }
  if (has_refused()) {
    throw EnvironmentError(fmt::format("rank 0 refuses rank {}: {}", hello.rank, reasons.at(Welcome::Answer::kRefused)),
                           "Start every rank with the same program and WORLD_SIZE, and with a RANK of its own. "
                           "Give each of several runs a MASTER_PORT of its own.");
  }
  const PeerError error = late("start of the run at " + str(), "rank 0", timeout);
  // The reason of the hub which has most in common with this run.
  const std::string& reason = reasons.empty() ? search.reason() : reasons.rbegin()->second;
  throw PeerError(
      fmt::format("{} ({})", error.what(), reason),
      "Look for an error of rank 0. It must be reachable there: see firewalls, and MASTER_ADDR and MASTER_PORT where "
      "they are set; LOCKSTEP_MASTER_PORT names a port that is open, LOCKSTEP_INTERFACE the network, and MASTER_ADDR "
      "must lead to that network.");
}

}  // namespace lockstep::comm
