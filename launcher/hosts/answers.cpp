// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/answers.h"

#include <lockstep/version.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "comm/group/network_choice.h"
#include "comm/group/versions.h"
#include "launcher/hosts/marked_processes.h"
#include "launcher/hosts/probe.h"
#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/base/interfaces.h"
#include "runtime/base/program_search.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// Without a question. Others are asked meanwhile: with many hosts for minutes.
constexpr unsigned kLongestSilence = 600;

void tell(const Json& words) {
  std::fputs((words.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
  std::fflush(stdout);
}

Json facts(const std::string& folder, const ProbeTarget& target) {
  const std::string mpi = comm::mpi_version();
  Json facts{{"lockstep", kVersion},
             {"mpi", mpi.empty() ? "no MPI" : mpi},
             {"mpi_daemon", find_program("orted") || find_program("prted")},
             {"folder", std::filesystem::is_directory(folder)},
             {"host", host_name()},
             {"interfaces", Json::array()},
             {"port", target.port()},
             {"id", target.id()}};
  const std::vector<Interface> chosen = comm::chosen_interfaces();
  for (const Interface& each : chosen.empty() ? interfaces() : chosen) {
    facts["interfaces"].push_back({{"name", each.name},
                                   {"address", each.address},
                                   {"network", each.network()},
                                   {"up", each.up},
                                   {"loopback", each.is_loopback},
                                   {"internal", each.is_internal}});
  }
  return facts;
}

ProbeAddress address_in(const Json& words) {
  return {words.at("address").get<std::string>(), words.at("port").get<std::uint16_t>(),
          words.at("id").get<std::uint64_t>()};
}

Json reach(const Json& targets) {
  std::vector<std::string> reasons(targets.size());
  {
    std::vector<std::jthread> probes;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      probes.emplace_back([&reasons, i, target = address_in(targets[i])] { reasons[i] = unreachable(target); });
    }
  }
  return {{"reasons", reasons}};
}

Json answer(const Json& words) {
  const std::string what = words.at("do").get<std::string>();
  if (what == "reach") return reach(words.at("targets"));
  if (what == "kill") {
    kill_marked(words.at("mark").get<std::string>());
    return Json::object();
  }
  if (what == "measure") {
    const LinkSpeed speed = measure(address_in(words));
    return {{"reason", speed.reason},
            {"latency_us", speed.latency_us},
            {"mbit_per_s", speed.mbit_per_s},
            {"mtu", speed.mtu}};
  }
  if (what != "clock") throw UsageError("lockstep doctor --answer was asked for \"" + what + "\"");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {{"us", std::chrono::duration_cast<std::chrono::microseconds>(now).count()}};
}

}  // namespace

void answer_about_this_host(const std::string& folder) {
  // An ssh whose other end is gone may leave stdin open.
  std::signal(SIGALRM, SIG_DFL);
  alarm(kLongestSilence);
  const ProbeTarget target;
  tell(facts(folder, target));
  for (std::string line; std::getline(std::cin, line);) {
    alarm(kLongestSilence);
    tell(answer(Json::parse(line)));
  }
}

}  // namespace lockstep::launcher
