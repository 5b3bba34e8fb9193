// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/network_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kOpenPorts =
    "Open the ports between the hosts: Open MPI and NCCL take any free ones. Ranks over TCP can do with "
    "LOCKSTEP_MASTER_PORT and the 16 ports behind it.";

std::string text_at(const Json& object, const char* name) { return object[name].get<std::string>(); }

bool leads_out(const Json& interface) { return interface["up"] == true && interface["loopback"] == false; }

/// A network and where the answering hosts are in it.
struct SharedNetwork {
  std::vector<std::string> hosts;
  std::map<std::string, std::vector<std::string>> interfaces;  ///< by address: "docker0 of a"
  bool works = false;
  double slowest = 0;  ///< Mbit/s

  /// The address that several hosts have; empty where there is none.
  std::string shared_address() const {
    const auto found = std::ranges::find_if(interfaces, [](const auto& entry) { return entry.second.size() > 1; });
    return found == interfaces.end() ? "" : found->first;
  }
};

class SharedNetworks {
 public:
  SharedNetworks(const Json& hosts, const Json& ways) : ways_(ways) {
    for (const Json& host : hosts) {
      if (host["answers"] == false) continue;
      ++hosts_;
      for (const Json& interface : host["interfaces"]) {
        if (!leads_out(interface)) continue;
        SharedNetwork& network = networks_[text_at(interface, "network")];
        const std::string name = text_at(host, "host");
        if (std::ranges::find(network.hosts, name) == network.hosts.end()) network.hosts.push_back(name);
        network.interfaces[text_at(interface, "address")].push_back(
            fmt::format("{} of {}", text_at(interface, "name"), name));
      }
    }
    for (auto& [name, network] : networks_) judge(name, network);
  }

  const std::map<std::string, SharedNetwork>& all() const { return networks_; }

  /// The fastest one that works between all hosts; empty where there is none.
  std::string best() const {
    std::string best;
    double speed = -1;
    for (const auto& [name, network] : networks_) {
      if (!network.works || network.slowest <= speed) continue;
      best = name;
      speed = network.slowest;
    }
    return best;
  }

 private:
  void judge(const std::string& name, SharedNetwork& network) const {
    // Pairs, since a host may have several addresses in a network.
    std::set<std::pair<std::string, std::string>> connected;
    const auto is_here = [&network](const std::string& host) {
      return std::ranges::find(network.hosts, host) != network.hosts.end();
    };
    double slowest = std::numeric_limits<double>::max();
    for (const Json& way : ways_) {
      if (way["network"] != name || way["connects"] == false) continue;
      // One of them may have stopped answering since.
      if (!is_here(text_at(way, "from")) || !is_here(text_at(way, "to"))) continue;
      connected.emplace(text_at(way, "from"), text_at(way, "to"));
      if (way["mbit_per_s"].is_number()) slowest = std::min(slowest, way["mbit_per_s"].get<double>());
    }
    const std::size_t pairs = hosts_ * (hosts_ - 1);
    network.works =
        hosts_ > 1 && network.hosts.size() == hosts_ && connected.size() == pairs && network.shared_address().empty();
    network.slowest = network.works ? slowest : 0;
  }

  const Json& ways_;
  std::size_t hosts_ = 0;
  std::map<std::string, SharedNetwork> networks_;
};

std::string choice_of(const std::string& network) {
  if (network.empty()) return "Connect all hosts by one network, and name it by --interface.";
  return fmt::format("--interface {0}, or LOCKSTEP_INTERFACE={0}, has ranks use the network that works.", network);
}

bool is_between(const Json& way, const Json& from, const Json& to) { return way["from"] == from && way["to"] == to; }

bool any_way(const Json& ways, const Json& from, const Json& to) {
  return std::ranges::any_of(ways,
                             [&](const Json& way) { return is_between(way, from, to) && way["connects"] == true; });
}

Json finding(const std::string& missing, const std::string& consequence, const std::string& advice) {
  return {{"missing", missing}, {"consequence", consequence}, {"advice", advice}};
}

/// The findings on a way that does not connect. `seen`: pairs of hosts that have been named as having none.
void judge_way(const Json& ways, const Json& way, const std::string& best, std::set<std::string>& seen,
               Json& findings) {
  const auto text = [&way](const char* name) { return text_at(way, name); };
  const std::string pair = text("from") + " to " + text("to");
  if (!any_way(ways, way["from"], way["to"])) {
    if (!seen.insert(pair).second) return;
    findings.push_back(finding(fmt::format("a connection from {} at a free port ({})", pair, text("reason")),
                               "ranks on these hosts do not find each other", kOpenPorts));
  } else if (way["network"].is_null()) {
    findings.push_back(
        finding(fmt::format("a connection from {} by its name ({})", pair, text("reason")),
                "ranks over TCP that are told MASTER_ADDR by name do not find it",
                "Give it the address that other hosts reach in /etc/hosts or DNS, or name the address."));
  } else {
    findings.push_back(finding(
        fmt::format("a connection from {} through {} ({}: {})", pair, text("network"), text("address"), text("reason")),
        "through MPI, which uses every network that two hosts have, ranks wait for one that leads nowhere",
        choice_of(best)));
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> shared_networks(const Json& from, const Json& to) {
  std::vector<std::pair<std::string, std::string>> shared;
  for (const Json& there : to["interfaces"]) {
    const auto is_shared = [&there](const Json& here) {
      return leads_out(here) && here["network"] == there["network"];
    };
    const auto is_same = [&there](const Json& here) { return here["address"] == there["address"]; };
    const Json& own = from["interfaces"];
    if (!leads_out(there) || std::ranges::none_of(own, is_shared) || std::ranges::any_of(own, is_same)) continue;
    shared.emplace_back(text_at(there, "network"), text_at(there, "address"));
  }
  return shared;
}

void add_network_findings(Json& examination, Json& findings) {
  const Json& ways = examination["ways"];
  const SharedNetworks networks(examination["hosts"], ways);
  const std::string best = networks.best();
  std::set<std::string> seen;
  for (const Json& way : ways) {
    if (way["connects"] == false) judge_way(ways, way, best, seen, findings);
  }
  Json list = Json::array();
  for (const auto& [name, network] : networks.all()) {
    if (network.hosts.size() < 2) continue;
    list.push_back({{"network", name}, {"hosts", network.hosts}, {"works", network.works}});
    const std::string address = network.shared_address();
    if (address.empty()) continue;
    findings.push_back(finding(fmt::format("addresses of their own in {}: {} is that of {}", name, address,
                                           fmt::join(network.interfaces.at(address), " and ")),
                               "Open MPI takes it for a way between these hosts, which it is not", choice_of(best)));
  }
  examination["networks"] = list;
  examination["use"] = best.empty() ? Json() : Json(best);
}

}  // namespace lockstep::launcher
