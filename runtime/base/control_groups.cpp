// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/control_groups.h"

#include <fstream>
#include <sstream>

namespace lockstep {

namespace fs = std::filesystem;

std::vector<fs::path> control_groups(const std::string& groups, const fs::path& mount, const std::string& controller) {
  std::vector<fs::path> folders;
  // A container may see no more of its own path than the mount itself.
  const auto add_along = [&folders](fs::path folder, const std::string& group) {
    folders.push_back(folder);
    for (const fs::path& part : fs::path(group).relative_path()) folders.push_back(folder /= part);
  };
  std::istringstream lines(groups);
  // "4:cpu,cpuacct:/path" of version 1; "0::/path" of version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      add_along(mount, group);
      add_along(mount / "unified", group);
    } else if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
      add_along(mount / controllers, group);
      add_along(mount / controller, group);
    }
  }
  return folders;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace lockstep
