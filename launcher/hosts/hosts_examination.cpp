// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/hosts_examination.h"

#include <fmt/format.h>
#include <lockstep/version.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "launcher/hosts/examined_host.h"
#include "launcher/hosts/network_findings.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// A difference of clocks that users notice in logs and in files' times.
constexpr double kClocksDiffer = 1000;

/// The value that most hosts have.
std::string usual(const std::deque<ExaminedHost>& hosts, const char* fact) {
  std::map<std::string, int> counts;
  for (const ExaminedHost& host : hosts) {
    if (host.answers()) ++counts[host.facts().at(fact).get<std::string>()];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? "" : most->first;
}

class Hosts {
 public:
  explicit Hosts(const std::vector<std::string>& names) {
    for (const std::string& name : names) hosts_.emplace_back(name);
  }

  Json examine() {
    on_each([](ExaminedHost& host) { host.greet(); });
    on_each([](ExaminedHost& host) { host.compare_clocks(); });
    look_for_ways();
    on_each([this](ExaminedHost& host) { try_ways_from(host); });
    measure_ways();
    for (const ExaminedHost& host : hosts_) judge(host);
    Json found{{"hosts", Json::array()}, {"ways", Json::array()}};
    for (const ExaminedHost& host : hosts_) found["hosts"].push_back(facts_of(host));
    for (const Way& way : ways_) found["ways"].push_back(way.row());
    add_network_findings(found, findings_);
    found["findings"] = findings_;
    return found;
  }

 private:
  template <class Do>
  static void on(ExaminedHost& host, Do&& act) {
    try {
      act(host);
    } catch (const std::exception& error) {
      host.give_up(error.what());
    }
  }

  template <class Do>
  void on_each(Do&& act) {
    std::vector<std::jthread> threads;
    for (ExaminedHost& host : hosts_) {
      if (host.failure().is_null()) threads.emplace_back([&act, &host] { on(host, act); });
    }
  }

  void lacks(const std::string& missing, const std::string& consequence, const std::string& advice) {
    findings_.push_back({{"missing", missing}, {"consequence", consequence}, {"advice", advice}});
  }

  /// From one host to another: by its name, or by its address in a network that both have.
  struct Way {
    ExaminedHost* from;
    ExaminedHost* to;
    Json network;
    Json target;  ///< answers.h
    std::string reason = "not tried";
    Json speed;

    Json row() const {
      const auto measured = [this](const char* what) { return speed.is_null() ? Json() : speed.at(what); };
      return {{"from", from->name()},
              {"to", to->name()},
              {"network", network},
              {"address", target["address"]},
              {"connects", reason.empty()},
              {"reason", reason},
              {"latency_us", measured("latency_us")},
              {"mbit_per_s", measured("mbit_per_s")},
              {"mtu", measured("mtu")}};
    }
  };

  void look_for_ways() {
    for (ExaminedHost& from : hosts_) {
      for (ExaminedHost& to : hosts_) {
        if (&from == &to || !from.answers() || !to.answers()) continue;
        const auto add = [&](const Json& network, const std::string& address) {
          const Json target{{"address", address}, {"port", to.facts()["port"]}, {"id", to.facts()["id"]}};
          ways_.push_back({.from = &from, .to = &to, .network = network, .target = target, .speed = nullptr});
        };
        add(nullptr, to.name());
        for (const auto& [network, address] : shared_networks(from.facts(), to.facts())) add(network, address);
      }
    }
  }

  void try_ways_from(ExaminedHost& host) {
    Json targets = Json::array();
    for (const Way& way : ways_) {
      if (way.from == &host) targets.push_back(way.target);
    }
    const Json answer = host.ask({{"do", "reach"}, {"targets", targets}});
    std::size_t next = 0;
    for (Way& way : ways_) {
      if (way.from != &host) continue;
      way.reason =
          answer.is_object() ? answer.at("reasons").at(next++).get<std::string>() : "the host stopped answering";
    }
  }

  /// One direction of each two hosts. A host is in one measurement at a time, and as many as that allows go on at once.
  void measure_ways() {
    std::set<std::pair<std::string, std::string>> seen;
    std::vector<Way*> left;
    for (Way& way : ways_) {
      if (!way.reason.empty() || seen.contains({way.to->name(), way.from->name()})) continue;
      seen.insert({way.from->name(), way.to->name()});
      left.push_back(&way);
    }
    while (!left.empty()) {
      std::set<ExaminedHost*> busy;
      std::vector<std::jthread> threads;
      std::erase_if(left, [&](Way* way) {
        if (busy.contains(way->from) || busy.contains(way->to)) return false;
        busy.insert({way->from, way->to});
        threads.emplace_back([way] { on(*way->from, [way](ExaminedHost&) { measure(*way); }); });
        return true;
      });
    }
  }

  static void measure(Way& way) {
    Json question = way.target;
    question["do"] = "measure";
    const Json answer = way.from->ask(question);
    if (!answer.is_object()) return;
    way.reason = answer.at("reason").get<std::string>();
    if (way.reason.empty()) way.speed = answer;
  }

  void judge(const ExaminedHost& host) {
    if (!host.answers()) {
      findings_.push_back(host.failure());
      return;
    }
    const Json& facts = host.facts();
    if (facts["lockstep"] != kVersion) {
      lacks(fmt::format("the same version on {}: it has {}, this host {}", host.name(),
                        facts.at("lockstep").get<std::string>(), kVersion),
            "ranks of different builds do not train together", "Install the same build on every host.");
    }
    if (facts["mpi"] != usual(hosts_, "mpi")) {
      lacks(fmt::format("the same MPI on {}: it has {}, others {}", host.name(), facts.at("mpi").get<std::string>(),
                        usual(hosts_, "mpi")),
            "ranks do not find each other", "Install the same Open MPI on every host.");
    }
    if (facts["mpi_daemon"] == false) {
      lacks(fmt::format("orted or prted in PATH on {}, as ssh sees it", host.name()), "mpirun cannot start ranks there",
            "Install Open MPI there (Debian: openmpi-bin), or set PATH where a shell without a terminal reads it.");
    }
    if (facts["folder"] == false) {
      lacks(fmt::format("{} on {}", std::filesystem::current_path().string(), host.name()),
            "ranks start in the folder in which they are asked for",
            "Make it there, or work in one that all hosts have.");
    }
    if (std::abs(host.clock_ms()) - host.clock_error_ms() > kClocksDiffer) {
      lacks(
          fmt::format("the same time on {}: its clock is {:.1f} s {}, give or take {:.1f} ms", host.name(),
                      std::abs(host.clock_ms()) / 1e3, host.clock_ms() > 0 ? "ahead" : "behind", host.clock_error_ms()),
          "times in logs and of files do not compare", "Set the clocks by the network: NTP, chrony.");
    }
  }

  static Json facts_of(const ExaminedHost& host) {
    if (!host.answers()) {
      return {{"host", host.name()}, {"answers", false},          {"lockstep", nullptr},        {"mpi", nullptr},
              {"clock_ms", nullptr}, {"clock_error_ms", nullptr}, {"interfaces", Json::array()}};
    }
    const Json& facts = host.facts();
    return {{"host", host.name()},
            {"answers", true},
            {"lockstep", facts["lockstep"]},
            {"mpi", facts["mpi"]},
            {"clock_ms", host.clock_ms()},
            {"clock_error_ms", host.clock_error_ms()},
            {"interfaces", facts["interfaces"]}};
  }

  std::deque<ExaminedHost> hosts_;  // which do not move
  std::vector<Way> ways_;
  Json findings_ = Json::array();
};

}  // namespace

Json examine_hosts(const std::vector<std::string>& hosts) { return Hosts(hosts).examine(); }

}  // namespace lockstep::launcher
