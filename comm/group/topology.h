// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <map>
#include <vector>

namespace lockstep::comm {

/// One rank's place among the nodes. A node is a set of ranks that can share memory.
struct Topology {
  int rank = 0;
  int size = 1;

  int machine_rank = 0;            ///< among the ranks of this machine
  std::map<int, pid_t> processes;  ///< world ranks of this machine
  bool spare_cores = true;         ///< every rank of this machine can have a core of its own

  bool uniform = true;            ///< every node has as many ranks
  int local_rank = 0;             ///< among the ranks of this node
  std::vector<int> world_ranks;   ///< 0, 1, ...
  std::vector<int> local_ranks;   ///< world ranks of this node, by local rank
  std::vector<int> across_ranks;  ///< world ranks with this local rank, by node

  // The communicators of these groups; whoever called discover_topology() frees them.
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm across = MPI_COMM_NULL;

  int machine_size() const { return static_cast<int>(processes.size()); }
  int local_size() const { return static_cast<int>(local_ranks.size()); }
};

/// A collective over all ranks of MPI_COMM_WORLD. LOCKSTEP_RANKS_PER_NODE=k, for tests, divides a machine into nodes of
/// k ranks.
Topology discover_topology();

}  // namespace lockstep::comm
