// SPDX-License-Identifier: Apache-2.0
#include "launcher/hosts/host_names.h"

#include <algorithm>
#include <sstream>

#include "runtime/base/host_name.h"

namespace lockstep::launcher {

std::vector<std::string> host_names(const std::string& hosts) {
  std::vector<std::string> names;
  std::istringstream list(hosts);
  for (std::string host; std::getline(list, host, ',');) {
    const std::string name = host.substr(0, host.find(':'));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

bool is_this_host(const std::string& name) { return name == host_name() || name == "localhost"; }

}  // namespace lockstep::launcher
