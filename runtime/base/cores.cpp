// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "runtime/base/control_groups.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// "200000 100000" microseconds are two cores; a quota of "max", of -1, or none at all is no limit.
double cores_in(const std::string& quota_and_period) {
  std::istringstream text(quota_and_period);
  double quota = 0;
  double period = 0;
  return text >> quota >> period && quota > 0 && period > 0 ? quota / period : kNone;
}

/// The cores that the group in this folder is allowed.
double quota_in(const fs::path& folder) {
  return std::min(cores_in(text_of(folder / "cpu.max")),
                  cores_in(text_of(folder / "cpu.cfs_quota_us") + " " + text_of(folder / "cpu.cfs_period_us")));
}

}  // namespace

double cpu_quota(const std::string& groups, const fs::path& mount) {
  double cores = kNone;
  for (const fs::path& folder : control_groups(groups, mount, "cpu")) cores = std::min(cores, quota_in(folder));
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
