// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/supervisor/host_connection.h"

namespace lockstep::launcher {

/// Watches the hosts of a run over ssh connections of its own: mpirun does not say when a host no longer answers. A
/// host that has never let us in, as one without a key for ssh, is not watched.
class HostWatch {
 public:
  /// `ssh`: the program. `limit`: how long a host may be without a sign.
  HostWatch(std::filesystem::path ssh, const std::vector<std::string>& hosts, std::chrono::milliseconds limit);

  /// To be called several times a second. A host that let us in before and does no longer: its connection ended after
  /// half of the limit without a sign, and another one could not be made in the other half.
  std::optional<std::string> look();
  /// A sentence for each host that is not watched; each once.
  std::vector<std::string> take_unwatched() { return std::exchange(unwatched_, {}); }
  /// The hosts that have let us in.
  std::vector<std::string> reached() const;

 private:
  struct Host {
    std::string name;
    std::unique_ptr<HostConnection> connection;
    bool was_in = false;
  };

  std::filesystem::path ssh_;
  long seconds_;  ///< half of the limit
  std::vector<Host> hosts_;
  std::vector<std::string> unwatched_;
};

}  // namespace lockstep::launcher
