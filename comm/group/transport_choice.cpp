// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

#include "comm/group/launcher_variables.h"
#include "comm/group/slurm_step.h"
#include "comm/group/versions.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

namespace fs = std::filesystem;

bool starts_mpi(LaunchEnvironment::Launcher launcher) {
  using Launcher = LaunchEnvironment::Launcher;
  if (launcher == Launcher::kSlurm) return slurm_starts_mpi() && !mpi_version().empty();
  return launcher != Launcher::kTorchrun;
}

/// What LOCKSTEP_TRANSPORT says; empty where it says nothing.
std::string wanted_transport() {
  if (!is_set(kTransportVariable)) return "";
  const std::string transport = text_in(kTransportVariable);
  if (transport == "tcp" || transport == "mpi") return transport;
  throw UsageError(fmt::format("environment variable {} is \"{}\"", kTransportVariable, transport),
                   "It is mpi or tcp.");
}

/// Without a word of the user. Ranks of one machine need neither for their data.
std::string best_transport(const LaunchEnvironment& environment) {
  return environment.local_size == environment.size || has_rdma() ? "mpi" : "tcp";
}

}  // namespace

bool needs_board(const LaunchEnvironment& environment) {
  const std::string wanted = wanted_transport();
  return starts_mpi(environment.launcher) && (wanted == "tcp" || environment.local_size < environment.size);
}

bool joins_over_tcp(const LaunchEnvironment& environment, LaunchBoard* board) {
  const std::string wanted = wanted_transport();
  if (!starts_mpi(environment.launcher)) {
    if (wanted != "mpi") return true;
    throw UsageError(
        fmt::format("environment variable {} is \"mpi\", and these ranks were started without MPI", kTransportVariable),
        "Start them with mpirun or srun --mpi=pmix, or leave the variable unset.");
  }
  if (board == nullptr) {
    if (wanted != "tcp") return false;
    throw UsageError(fmt::format("environment variable {} is \"tcp\", and the launcher of these ranks has no PMIx, "
                                 "through which rank 0 would tell the others where it is",
                                 kTransportVariable),
                     "Start them with the mpirun of Open MPI 4 or 5, with srun or with torchrun, or leave the variable "
                     "unset.");
  }
  const std::string decided = board->word_of_rank_0("transport", wanted.empty() ? best_transport(environment) : wanted);
  if (wanted.empty() || wanted == decided) return decided == "tcp";
  throw UsageError(fmt::format("environment variable {} is \"{}\" on rank {}, and rank 0 uses {}", kTransportVariable,
                               wanted, environment.rank, decided),
                   fmt::format("Set it for all ranks: mpirun -x {} hands it on to other hosts.", kTransportVariable));
}

bool has_rdma(const fs::path& classes) {
  constexpr std::array kClasses{"infiniband", "cxi"};
  return std::ranges::any_of(kClasses, [&](const char* name) {
    std::error_code error;
    const fs::directory_iterator devices(classes / name, error);
    return !error && devices != fs::directory_iterator();
  });
}

}  // namespace lockstep::comm
