// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport_choice.h"

#include <fmt/format.h>

#include "comm/group/launcher_variables.h"
#include "comm/group/slurm_step.h"
#include "comm/group/versions.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

bool starts_mpi(LaunchEnvironment::Launcher launcher) {
  using Launcher = LaunchEnvironment::Launcher;
  if (launcher == Launcher::kSlurm) return slurm_starts_mpi() && !mpi_version().empty();
  return launcher != Launcher::kTorchrun;
}

}  // namespace

bool chooses_tcp() {
  if (!is_set(kTransportVariable)) return false;
  const std::string transport = text_in(kTransportVariable);
  if (transport == "tcp" || transport == "mpi") return transport == "tcp";
  throw UsageError(fmt::format("environment variable {} is \"{}\"", kTransportVariable, transport),
                   "It is mpi or tcp.");
}

bool joins_over_tcp(LaunchEnvironment::Launcher launcher) {
  if (chooses_tcp()) return true;
  if (starts_mpi(launcher)) return false;
  if (!is_set(kTransportVariable)) return true;
  throw UsageError(
      fmt::format("environment variable {} is \"mpi\", and these ranks were started without MPI", kTransportVariable),
      "Start them with mpirun or srun --mpi=pmix, or leave the variable unset.");
}

}  // namespace lockstep::comm
