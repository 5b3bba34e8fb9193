// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// The cores that this process may use, at least 1: those that it may run on, and no more whole ones than the CPU quota
/// of its control groups (a container's --cpus) pays for.
int usable_cores();

/// The CPU quota of control groups, in cores; infinity where there is none. `groups`: what /proc/self/cgroup says.
/// `mount`: where the groups' files are, /sys/fs/cgroup. Versions 1 and 2.
double cpu_quota(const std::string& groups, const std::filesystem::path& mount);

}  // namespace lockstep
