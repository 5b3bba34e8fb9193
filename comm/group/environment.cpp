// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "comm/group/communicator.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

/// The variable's value, `fallback` where it is not set.
int integer(const char* name, int fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) {
    throw EnvironmentError(
        "environment variable " + std::string(name) + " is \"" + text + "\", where a launcher puts a count",
        "Unset it, or start the ranks with mpirun, srun or lockstep train --nproc.");
  }
  return value;
}

/// Slurm's tasks a node in its short form, "4(x2),3" for 4, 4, 3; 1 where it does not say.
int slurm_local_size() {
  const char* text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  std::string_view rest = text == nullptr ? "" : text;
  int nodes_before = integer("SLURM_NODEID", 0);
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

}  // namespace

LaunchEnvironment launch_environment() {
  using Launcher = LaunchEnvironment::Launcher;
  if (is_set("OMPI_COMM_WORLD_RANK")) {
    return {Launcher::kMpi, integer("OMPI_COMM_WORLD_RANK", 0), integer("OMPI_COMM_WORLD_SIZE", 1),
            integer("OMPI_COMM_WORLD_LOCAL_RANK", 0), integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
  }
  // Before Slurm: torchrun may itself have been started by srun, and it is the nearer one.
  if (is_set("RANK") && is_set("WORLD_SIZE") && is_set("LOCAL_RANK") && is_set("LOCAL_WORLD_SIZE")) {
    return {Launcher::kTorchrun, integer("RANK", 0), integer("WORLD_SIZE", 1), integer("LOCAL_RANK", 0),
            integer("LOCAL_WORLD_SIZE", 1)};
  }
  // A batch script outside any step sees SLURM_NTASKS too, but is one process.
  if (is_set("SLURM_STEP_ID") && (integer("SLURM_NTASKS", 1) > 1 || is_set("PMIX_RANK"))) {
    return {Launcher::kSlurm, integer("SLURM_PROCID", 0), integer("SLURM_NTASKS", 1), integer("SLURM_LOCALID", 0),
            slurm_local_size()};
  }
  return {};
}

}  // namespace lockstep::comm
