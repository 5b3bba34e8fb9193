// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "launcher/supervisor/host_connection.h"

namespace lockstep::launcher {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kListen{50};
/// Times the limit of an answer: ssh may take that for each address of a host.
constexpr int kSlowestEnd = 4;

}  // namespace

std::vector<std::string> call_hosts(const std::filesystem::path& ssh, std::vector<std::string> hosts,
                                    const std::function<bool(milliseconds)>& pass, const HostPatience& patience) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + patience.all;
  std::vector<std::string> said;
  for (;;) {
    std::map<std::string, std::unique_ptr<HostConnection>> calls;
    for (const std::string& host : hosts) {
      calls.emplace(host, std::make_unique<HostConnection>(ssh, host, patience.answer.count()));
    }
    hosts.clear();
    const auto given_up = steady_clock::now() + kSlowestEnd * patience.answer;
    while (!calls.empty()) {
      for (auto call = calls.begin(); call != calls.end();) {
        const bool ended = call->second->look() || steady_clock::now() > given_up;
        const bool is_in = call->second->is_in();
        if (ended && !is_in) hosts.push_back(call->first);
        call = ended || is_in ? calls.erase(call) : std::next(call);
      }
      if (!calls.empty() && !pass(kListen)) return {};
    }
    std::ranges::sort(hosts);
    if (hosts.empty() || steady_clock::now() >= end) return hosts;
    if (hosts != std::exchange(said, hosts)) {
      spdlog::warn("no answer from host {}: the ranks are started again once there is", fmt::join(hosts, ", "));
    }
    if (!pass(patience.pause)) return {};
  }
}

}  // namespace lockstep::launcher
