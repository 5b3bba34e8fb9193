// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "comm/group/communicator.h"
#include "comm/group/environment_variables.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

/// Slurm's tasks a node in its short form, "4(x2),3" for 4, 4, 3; 1 where it does not say.
int slurm_local_size() {
  const char* text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  std::string_view rest = text == nullptr ? "" : text;
  int nodes_before = integer_in("SLURM_NODEID", 0);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string group(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const std::size_t times = group.find("(x");
    nodes_before -= times == std::string::npos ? 1 : std::atoi(group.c_str() + times + 2);
    if (nodes_before < 0) return std::atoi(group.c_str());
  }
  return 1;
}

/// One of them alone says little: other programs use such names too.
constexpr std::array kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

LaunchEnvironment torchrun_environment() {
  const LaunchEnvironment found{LaunchEnvironment::Launcher::kTorchrun, integer_in("RANK"), integer_in("WORLD_SIZE"),
                                integer_in("LOCAL_RANK"), integer_in("LOCAL_WORLD_SIZE")};
  const auto require_below = [](const char* name, int value, const char* limit, int most) {
    if (value < most) return;
    throw EnvironmentError("environment variable " + std::string(name) + " is " + std::to_string(value) + ", and " +
                               limit + " is " + std::to_string(most),
                           "Ranks are counted from 0.");
  };
  require_below("RANK", found.rank, "WORLD_SIZE", found.size);
  require_below("LOCAL_RANK", found.local_rank, "LOCAL_WORLD_SIZE", found.local_size);
  return found;
}

}  // namespace

LaunchEnvironment launch_environment() {
  using Launcher = LaunchEnvironment::Launcher;
  if (is_set("OMPI_COMM_WORLD_RANK")) {
    return {Launcher::kMpi, integer_in("OMPI_COMM_WORLD_RANK", 0), integer_in("OMPI_COMM_WORLD_SIZE", 1),
            integer_in("OMPI_COMM_WORLD_LOCAL_RANK", 0), integer_in("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
  }
  // Before Slurm: torchrun may itself have been started by srun, and it is the nearer one.
  if (std::ranges::count_if(kTorchrun, is_set) > 1) return torchrun_environment();
  // A batch script outside any step sees SLURM_NTASKS too, but is one process.
  if (is_set("SLURM_STEP_ID") && (integer_in("SLURM_NTASKS", 1) > 1 || is_set("PMIX_RANK"))) {
    return {Launcher::kSlurm, integer_in("SLURM_PROCID", 0), integer_in("SLURM_NTASKS", 1),
            integer_in("SLURM_LOCALID", 0), slurm_local_size()};
  }
  return {};
}

}  // namespace lockstep::comm
