// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_connection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep::launcher {

namespace {

/// Signs that ssh asks for and does not get before it gives up, one behind the other.
constexpr int kUnanswered = 2;
constexpr std::size_t kMostWords = 500;

ChildCommand command_of(const std::filesystem::path& ssh, const std::string& host, long seconds) {
  const long interval = std::max<long>(1, seconds / (kUnanswered + 1));
  std::vector<std::string> arguments{ssh.string(), "-nNTxa"};
  // Once it is let in, ssh runs echo on this side: a line on stdout.
  for (const std::string& option :
       {std::string("BatchMode=yes"), std::string("PermitLocalCommand=yes"), std::string("LocalCommand=echo"),
        std::string("ControlPath=none"), std::string("LogLevel=ERROR"), fmt::format("ConnectTimeout={}", seconds),
        fmt::format("ServerAliveInterval={}", interval), fmt::format("ServerAliveCountMax={}", kUnanswered)}) {
    arguments.insert(arguments.end(), {"-o", option});
  }
  arguments.insert(arguments.end(), {"--", host});
  return {arguments, {}};
}

std::string read_some(int descriptor) {
  std::array<char, 512> buffer;
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  return std::string(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
}

}  // namespace

HostConnection::HostConnection(const std::filesystem::path& ssh, const std::string& host, long seconds)
    : process_(command_of(ssh, host, seconds)) {}

bool HostConnection::look() {
  const bool ended = process_.ended();
  if (!read_some(process_.output()).empty()) is_in_ = true;
  said_ += read_some(process_.messages());
  if (said_.size() > kMostWords) said_.erase(0, said_.size() - kMostWords);
  return ended;
}

std::string HostConnection::said() const { return said_.substr(0, said_.find_last_not_of("\r\n") + 1); }

}  // namespace lockstep::launcher
