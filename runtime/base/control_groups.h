// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// The folders of the control groups that limit this process by `controller` ("cpu", "memory"): a group is limited by
/// those around it too. Some of them may not exist. `groups`: what /proc/self/cgroup says. `mount`: where the groups'
/// files are, /sys/fs/cgroup. Versions 1 and 2.
std::vector<std::filesystem::path> control_groups(const std::string& groups, const std::filesystem::path& mount,
                                                  const std::string& controller);

/// The content of a small file of the kernel's; empty where there is none.
std::string text_of(const std::filesystem::path& path);

}  // namespace lockstep
