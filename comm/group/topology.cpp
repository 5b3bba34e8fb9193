// SPDX-License-Identifier: Apache-2.0
#include "comm/group/topology.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "comm/group/mpi/mpi_library.h"

namespace lockstep::comm {

namespace {

int rank_in(MPI_Comm comm) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

/// The part of `comm` that has this color, in its order.
MPI_Comm split(MPI_Comm comm, int color) {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm, color, rank_in(comm), &part), "MPI_Comm_split");
  return part;
}

std::vector<int> gather(int value, MPI_Comm comm) {
  std::vector<int> values(static_cast<std::size_t>(size_of(comm)));
  check_mpi(MPI_Allgather(&value, 1, MPI_INT, values.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return values;
}

/// How many cores the ranks of a machine may use between them: a launcher may have bound each to one.
int cores_of(MPI_Comm machine) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, machine), "MPI_Allreduce");
  return CPU_COUNT(&cores);
}

}  // namespace

Topology discover_topology() {
  const std::lock_guard lock(mpi_mutex());
  Topology topology;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &topology.world), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(topology.world, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  topology.rank = rank_in(topology.world);
  topology.size = size_of(topology.world);
  topology.world_ranks = gather(topology.rank, topology.world);

  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(topology.world, MPI_COMM_TYPE_SHARED, topology.rank, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  topology.machine_rank = rank_in(machine);
  const std::vector<int> machine_ranks = gather(topology.rank, machine);
  const std::vector<int> processes = gather(getpid(), machine);
  for (std::size_t i = 0; i < processes.size(); ++i) topology.processes[machine_ranks[i]] = processes[i];
  topology.spare_cores = cores_of(machine) >= topology.machine_size();

  const char* pretended = std::getenv("LOCKSTEP_RANKS_PER_NODE");
  const int ranks_per_node = pretended == nullptr ? 0 : std::atoi(pretended);
  topology.node = split(machine, ranks_per_node > 0 ? topology.machine_rank / ranks_per_node : 0);
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  topology.local_rank = rank_in(topology.node);
  topology.local_ranks = gather(topology.rank, topology.node);
  for (const int local_size : gather(topology.local_size(), topology.world)) {
    if (local_size != topology.local_size()) topology.uniform = false;
  }
  topology.across = split(topology.world, topology.local_rank);
  topology.across_ranks = gather(topology.rank, topology.across);
  return topology;
}

}  // namespace lockstep::comm
