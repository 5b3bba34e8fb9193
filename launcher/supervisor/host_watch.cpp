// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "launcher/hosts/host_names.h"

namespace lockstep::launcher {

namespace {

/// Signs that ssh asks for and does not get before it gives up, one behind the other.
constexpr int kUnanswered = 2;
constexpr std::size_t kMostWords = 500;

std::string read_some(int descriptor) {
  std::array<char, 512> buffer;
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  return std::string(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
}

}  // namespace

std::vector<std::string> other_hosts(const std::string& hosts) {
  std::vector<std::string> names = host_names(hosts);
  std::erase_if(names, is_this_host);
  return names;
}

HostWatch::HostWatch(std::filesystem::path ssh, const std::vector<std::string>& hosts, std::chrono::milliseconds limit)
    : ssh_(std::move(ssh)),
      seconds_(std::max<long>(1, std::chrono::duration_cast<std::chrono::seconds>(limit / 2).count())) {
  for (const std::string& name : hosts) connect(hosts_.emplace_back(Host{.name = name}));
}

void HostWatch::connect(Host& host) const {
  const long interval = std::max<long>(1, seconds_ / (kUnanswered + 1));
  std::vector<std::string> arguments{ssh_.string(), "-nNTxa"};
  // Once it is let in, ssh runs echo on this side: a line on stdout.
  for (const std::string& option :
       {std::string("BatchMode=yes"), std::string("PermitLocalCommand=yes"), std::string("LocalCommand=echo"),
        std::string("ControlPath=none"), std::string("LogLevel=ERROR"), fmt::format("ConnectTimeout={}", seconds_),
        fmt::format("ServerAliveInterval={}", interval), fmt::format("ServerAliveCountMax={}", kUnanswered)}) {
    arguments.insert(arguments.end(), {"-o", option});
  }
  arguments.push_back(host.name);
  host.is_in = false;
  host.connection = std::make_unique<ChildProcess>(ChildCommand{arguments, {}});
}

void HostWatch::hear(Host& host) {
  if (!read_some(host.connection->output()).empty()) host.is_in = host.was_in = true;
  host.said += read_some(host.connection->messages());
  if (host.said.size() > kMostWords) host.said.erase(0, host.said.size() - kMostWords);
}

std::optional<std::string> HostWatch::look() {
  for (Host& host : hosts_) {
    if (host.connection == nullptr) continue;
    const bool ended = host.connection->ended();
    hear(host);
    if (!ended) continue;
    if (host.is_in) {
      connect(host);
      continue;
    }
    host.connection.reset();
    if (host.was_in) return host.name;
    spdlog::warn("host {} is not watched, since ssh does not lead there: {}", host.name,
                 std::string_view(host.said).substr(0, host.said.find_last_not_of("\r\n") + 1));
  }
  return std::nullopt;
}

}  // namespace lockstep::launcher
