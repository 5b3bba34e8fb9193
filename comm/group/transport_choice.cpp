// SPDX-License-Identifier: Apache-2.0
#include "comm/group/transport_choice.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <fstream>
#include <string>

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

/// The value of LOCKSTEP_TRANSPORT; empty where it is not set.
std::string wanted_transport() {
  if (!is_set(kTransportVariable)) return "";
  const std::string transport = text_in(kTransportVariable);
  if (transport == "tcp" || transport == "mpi") return transport;
  throw UsageError(fmt::format("environment variable {} is \"{}\"", kTransportVariable, transport),
                   "It is mpi or tcp.");
}

bool any(const fs::path& pattern) {
  glob_t found{};
  const bool some = glob(pattern.c_str(), 0, nullptr, &found) == 0;
  globfree(&found);
  return some;
}

bool any_active(const fs::path& ports) {
  glob_t found{};
  bool active = false;
  if (glob((ports / "state").c_str(), 0, nullptr, &found) == 0) {
    active = std::any_of(found.gl_pathv, found.gl_pathv + found.gl_pathc, [](const char* file) {
      std::string state;
      std::getline(std::ifstream(file), state);
      return state.find("ACTIVE") != std::string::npos;
    });
  }
  globfree(&found);
  return active;
}

}  // namespace

bool needs_board(const LaunchEnvironment& environment) {
  const std::string wanted = wanted_transport();
  return starts_mpi(environment.launcher) && (wanted == "tcp" || environment.on_several_hosts());
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
  const std::string decided = board->word_of_rank_0("transport", transport_between_hosts());
  if (wanted.empty() || wanted == decided) return decided == "tcp";
  throw UsageError(fmt::format("environment variable {} is \"{}\" on rank {}, and rank 0 uses {}", kTransportVariable,
                               wanted, environment.rank, decided),
                   fmt::format("Set it for all ranks: mpirun -x {} hands it on to other hosts.", kTransportVariable));
}

std::string transport_between_hosts() {
  const std::string wanted = wanted_transport();
  if (!wanted.empty()) return wanted;
  return has_rdma() ? "mpi" : "tcp";
}

bool has_rdma(const fs::path& root) {
  // A container may see the host's devices and not be allowed to open them.
  const bool usable = any(root / "dev/infiniband/uverbs*") && any_active(root / "sys/class/infiniband/*/ports/*");
  return usable || any(root / "sys/class/cxi/*");
}

}  // namespace lockstep::comm
