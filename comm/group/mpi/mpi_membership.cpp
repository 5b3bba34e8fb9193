// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_membership.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <numeric>

#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

/// How long a rank that ends the job waits for a thread of its own that is inside MPI.
constexpr auto kAbortPatience = std::chrono::seconds(1);

/// All ranks, once MPI has been found to hold those that were promised.
Group promised_world(const LaunchEnvironment& environment, MpiLibrary& library) {
  Group world{.name = kFirstChannel};
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  world.ranks.resize(static_cast<std::size_t>(size));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  if (size == environment.size) return world;
  if (size == 1) library.finalize();  // alone, nobody is waited for
  throw EnvironmentError(
      fmt::format("the environment promises {} ranks (this is rank {}), but MPI finds {}: the processes do "
                  "not know of each other",
                  environment.size, environment.rank, size),
      environment.launcher == LaunchEnvironment::Launcher::kSlurm
          ? "Start them with srun --mpi=pmix, with srun --mpi=none, or with mpirun inside the allocation."
          : "Start them with the mpirun of the Open MPI that this program is built with.");
}

}  // namespace

MpiMembership::MpiMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options)
    : timeout_(options.timeout),
      world_(promised_world(environment, library_)),
      peers_(world_.rank),
      start_(MPI_COMM_WORLD, world_, peers_, timeout_) {
  // The first call in which ranks of different hosts connect: MPI waits without end for a network that leads nowhere.
  start_.complete({.kind = OperationKind::kJoin}, [this](MPI_Request* request) {
    return MPI_Comm_idup(MPI_COMM_WORLD, &comms_.emplace_back(), request);
  });
  const std::lock_guard lock(mpi_mutex());
  check_mpi(MPI_Comm_set_errhandler(comms_.front(), MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiMembership::~MpiMembership() {
  if (peers_.failed()) return;
  try {
    peers_.leave();
    MpiComm(world_comm(), world_, peers_, timeout_).meet({.kind = OperationKind::kLeave});
    {
      const std::lock_guard lock(mpi_mutex());
      for (MPI_Comm& comm : comms_) check_mpi(MPI_Comm_free(&comm), "MPI_Comm_free");
    }
    library_.finalize();
  } catch (const Error& error) {
    spdlog::warn("rank {} ends without the others: {}", world_.rank, error.what());
  }
}

void MpiMembership::abort(int exit_code) {
  fail();
  std::unique_lock lock(mpi_mutex(), kAbortPatience);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

MPI_Comm MpiMembership::split(MPI_Comm comm, int color, int key) {
  const std::lock_guard lock(mpi_mutex());
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
  if (part != MPI_COMM_NULL) comms_.push_back(part);
  return part;
}

}  // namespace lockstep::comm
