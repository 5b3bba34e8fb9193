// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "launcher/supervisor/child_process.h"

namespace lockstep::launcher {

/// The first mpirun in PATH. Throws EnvironmentError when there is none.
std::filesystem::path find_mpirun();

/// The command that starts `ranks` ranks of this program with `rank_arguments`, on the places of `hosts` in their
/// order: rank 0 lies on the first host that is named. `variables` reach the ranks, on every host, and so do this
/// process's own LOCKSTEP_* and NCCL_* ones. Throws EnvironmentError when there is no mpirun.
ChildCommand mpirun_command(int ranks, const std::string& hosts, const std::vector<std::string>& rank_arguments,
                            std::map<std::string, std::string> variables);

}  // namespace lockstep::launcher
