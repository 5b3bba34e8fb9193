// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace lockstep {

namespace fs = std::filesystem;

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// "200000 100000" microseconds are two cores; a quota of "max", of -1, or none at all is no limit.
double cores_in(const std::string& quota_and_period) {
  std::istringstream text(quota_and_period);
  double quota = 0;
  double period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : kNone;
}

/// What the group in this folder is allowed.
double quota_in(const fs::path& folder) {
  return std::min(cores_in(text_of(folder / "cpu.max")),
                  cores_in(text_of(folder / "cpu.cfs_quota_us") + " " + text_of(folder / "cpu.cfs_period_us")));
}

/// A group is limited by those around it too. Of a container's own path only the mount itself may be seen.
double quota_along(const fs::path& mount, const std::string& group) {
  double cores = quota_in(mount);
  fs::path folder = mount;
  for (const fs::path& part : fs::path(group).relative_path()) cores = std::min(cores, quota_in(folder /= part));
  return cores;
}

}  // namespace

double cpu_quota(const std::string& groups, const fs::path& mount) {
  double cores = kNone;
  std::istringstream lines(groups);
  // "4:cpu,cpuacct:/path" of version 1; "0::/path" of version 2.
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      cores = std::min({cores, quota_along(mount, group), quota_along(mount / "unified", group)});
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      cores = std::min({cores, quota_along(mount / controllers, group), quota_along(mount / "cpu", group)});
    }
  }
  return cores;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int seen = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const double paid = cpu_quota(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1, paid < static_cast<double>(seen) ? static_cast<int>(paid) : seen);
}

}  // namespace lockstep
