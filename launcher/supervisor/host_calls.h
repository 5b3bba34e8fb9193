// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// How long to wait for hosts, how long for one answer, and between two calls.
struct HostPatience {
  std::chrono::milliseconds all{std::chrono::minutes(30)};
  std::chrono::seconds answer{5};
  std::chrono::milliseconds pause{std::chrono::seconds(2)};
};

/// Waits until each of the hosts lets us in through `ssh`, and says which do not. `pass` waits, and returns whether to
/// go on. Returns the hosts that have not answered when patience ended; none where `pass` ended the wait.
std::vector<std::string> call_hosts(const std::filesystem::path& ssh, std::vector<std::string> hosts,
                                    const std::function<bool(std::chrono::milliseconds)>& pass,
                                    const HostPatience& patience = {});

}  // namespace lockstep::launcher
