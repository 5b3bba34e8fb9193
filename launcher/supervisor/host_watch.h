// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/supervisor/child_process.h"

namespace lockstep::launcher {

/// The hosts of "a:4,b:4" but for this one, each once.
std::vector<std::string> other_hosts(const std::string& hosts);

/// Watches the hosts of a run over ssh connections of its own, on which nothing runs there: ssh asks the other side for
/// a sign every now and then, and mpirun does not say when a host no longer answers. A host that has never let us in,
/// as one without a key for ssh, is not watched, which is logged.
class HostWatch {
 public:
  /// `ssh`: the program. `limit`: how long a host may be without a sign.
  HostWatch(std::filesystem::path ssh, const std::vector<std::string>& hosts, std::chrono::milliseconds limit);

  /// To be called several times a second. A host that let us in before and does no longer: its connection ended after
  /// half of the limit without a sign, and another one could not be made in the other half.
  std::optional<std::string> look();

 private:
  struct Host {
    std::string name;
    std::unique_ptr<ChildProcess> connection;
    bool is_in = false;   ///< of this connection
    bool was_in = false;  ///< of any
    std::string said;
  };

  void connect(Host& host) const;
  static void hear(Host& host);

  std::filesystem::path ssh_;
  long seconds_;  ///< half of the limit
  std::vector<Host> hosts_;
};

}  // namespace lockstep::launcher
