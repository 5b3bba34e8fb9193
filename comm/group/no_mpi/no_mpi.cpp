// SPDX-License-Identifier: Apache-2.0
// A build without MPI: ranks find each other over TCP alone.
#include <fmt/format.h>

#include "comm/group/join.h"
#include "comm/group/launch_board.h"
#include "comm/group/versions.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

Joined join_mpi(const LaunchEnvironment& environment, const CommunicatorOptions&) {
  throw EnvironmentError(
      fmt::format("this is rank {} of {} that mpirun has started, and this build has no MPI, through "
                  "which they would find each other",
                  environment.rank, environment.size),
      "Start the ranks with srun or torchrun, or set its variables (RANK, WORLD_SIZE, LOCAL_RANK, "
      "LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT); or build where MPI is installed.");
}

std::unique_ptr<LaunchBoard> launch_board(std::chrono::milliseconds) { return nullptr; }

std::string mpi_version() { return {}; }

}  // namespace lockstep::comm
