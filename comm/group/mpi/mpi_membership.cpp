// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_membership.h"

#include <spdlog/spdlog.h>

#include "comm/group/mpi/mpi_comm.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

/// How long a rank that ends the job waits for a thread of its own that is inside MPI.
constexpr auto kAbortPatience = std::chrono::seconds(1);

/// The ranks' places, once MPI has been found to hold the ranks that were promised.
Topology promised_topology(const LaunchEnvironment& environment, MpiLibrary& library) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == environment.size) return discover_topology();
  if (size == 1) library.finalize();  // alone, nobody is waited for
  throw EnvironmentError("the environment promises " + std::to_string(environment.size) + " ranks (this is rank " +
                             std::to_string(environment.rank) + "), but MPI finds " + std::to_string(size) +
                             ": the processes do not know of each other",
                         environment.launcher == LaunchEnvironment::Launcher::kSlurm
                             ? "Start them with srun --mpi=pmix, or with mpirun inside the allocation."
                             : "Start them with the mpirun of the Open MPI that this program is built with.");
}

}  // namespace

MpiMembership::MpiMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options)
    : options_(options),
      topology_(promised_topology(environment, library_)),
      peers_(topology_.rank, topology_.processes),
      windows_(topology_) {
  comms_ = {topology_.world, topology_.node, topology_.across};
  if (options_.shared_memory) publish_states();
}

MpiMembership::~MpiMembership() {
  if (peers_.failed()) return;
  try {
    peers_.leave();
    MpiComm(topology_.world, topology_.world_ranks, peers_, kFirstChannel, options_.timeout)
        .meet({.kind = OperationKind::kLeave});
    windows_.free_all();
    {
      const std::lock_guard lock(mpi_mutex());
      for (MPI_Comm& comm : comms_) check_mpi(MPI_Comm_free(&comm), "MPI_Comm_free");
    }
    library_.finalize();
  } catch (const Error& error) {
    spdlog::warn("rank {} ends without the others: {}", topology_.rank, error.what());
  }
}

void MpiMembership::abort(int exit_code) {
  fail();
  std::unique_lock lock(mpi_mutex(), kAbortPatience);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

MPI_Comm MpiMembership::duplicate(MPI_Comm comm) {
  const std::lock_guard lock(mpi_mutex());
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  comms_.push_back(copy);
  return copy;
}

void MpiMembership::warn_of_shortage() {
  if (topology_.rank != 0 || warned_) return;
  warned_ = true;
  spdlog::warn(
      "shared memory is too small: {}; the ranks exchange this through MPI instead, which is slower. Enlarge it, in a "
      "container with docker run --shm-size=1g, else with mount -o remount,size=... /dev/shm",
      windows_.shortage());
}

void MpiMembership::publish_states() {
  const std::shared_ptr<SharedWindow> window = windows_.allocate(sizeof(SharedWord));
  if (!window) return;
  std::map<int, SharedWord*> states;
  for (std::size_t r = 0; r < window->parts.size(); ++r) {
    // Zeroed memory is kRunning, whoever looks first.
    states[topology_.local_ranks[r]] = reinterpret_cast<SharedWord*>(window->parts[r]);
  }
  peers_.publish(std::move(states));
}

}  // namespace lockstep::comm
