// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_watch.h"

#include <fmt/format.h>

namespace lockstep::launcher {

HostWatch::HostWatch(std::filesystem::path ssh, const std::vector<std::string>& hosts, std::chrono::milliseconds limit)
    : ssh_(std::move(ssh)),
      seconds_(std::max<long>(1, std::chrono::duration_cast<std::chrono::seconds>(limit / 2).count())) {
  for (const std::string& name : hosts) {
    hosts_.push_back({.name = name, .connection = std::make_unique<HostConnection>(ssh_, name, seconds_)});
  }
}

std::optional<std::string> HostWatch::look() {
  for (Host& host : hosts_) {
    if (host.connection == nullptr) continue;
    const bool ended = host.connection->look();
    const bool is_in = host.connection->is_in();
    host.was_in = host.was_in || is_in;
    if (!ended) continue;
    if (is_in) {
      host.connection = std::make_unique<HostConnection>(ssh_, host.name, seconds_);
      continue;
    }
    const std::string said = host.connection->said();
    host.connection.reset();
    if (host.was_in) return host.name;
    unwatched_.push_back(fmt::format("host {} is not watched, since ssh does not lead there: {}", host.name, said));
  }
  return std::nullopt;
}

std::vector<std::string> HostWatch::reached() const {
  std::vector<std::string> names;
  for (const Host& host : hosts_) {
    if (host.was_in) names.push_back(host.name);
  }
  return names;
}

}  // namespace lockstep::launcher
