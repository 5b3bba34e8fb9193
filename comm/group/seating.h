// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/group/transport.h"

namespace lockstep::comm {

/// Where a rank runs. Plain bytes, which the ranks exchange.
struct Seat {
  char machine[64] = {};            ///< the same for all processes of a running system
  char host[64] = {};               ///< its name, for messages
  std::uint64_t pid_namespace = 0;  ///< inside which `process` means something
  std::int64_t process = 0;
  cpu_set_t cores{};  ///< that it may use: a launcher may have bound it to one

  static Seat of_this_process();
};

/// A group as its rank sees it. A node is a set of ranks that can share memory.
struct Topology {
  std::vector<int> local;   ///< the group's ranks in this node, in their order
  int local_rank = 0;       ///< this rank's place in `local`
  int size = 1;             ///< the group's
  bool uniform = true;      ///< every node has as many ranks of the group
  bool spare_cores = true;  ///< every rank of this machine can have a core of its own
  int machine_cores = 1;    ///< that the ranks of this machine may use, all together
  int machine_ranks = 1;

  int local_size() const { return static_cast<int>(local.size()); }
  bool one_node() const { return local_size() == size; }
};

/// Which rank of the job runs where.
class Seating {
 public:
  /// `seats` by world rank. LOCKSTEP_RANKS_PER_NODE=k, for tests, divides a machine into nodes of k ranks.
  explicit Seating(const std::vector<Seat>& seats);

  /// The place of `rank` among the ranks of its machine, and their number.
  int machine_rank(int rank) const;
  int machine_size(int rank) const;
  /// Each rank as errors of `rank` name it: "rank 1 (process 64 on b)".
  std::map<int, std::string> names_for(int rank) const;
  /// The ranks whose processes `rank` can watch, itself among them, each with its process.
  std::map<int, pid_t> processes_beside(int rank) const;
  Topology topology_of(const Group& group) const;

 private:
  struct Place {
    Seat seat;
    int machine_rank = 0;
    int machine_size = 0;
    int node = 0;  ///< the world rank of the first rank of its node
    int machine_cores = 1;

    bool spare_cores() const { return machine_cores >= machine_size; }
  };
  std::vector<Place> places_;
};

/// Which of the communicator's ranks share this rank's node. A collective.
Topology topology_of(Communicator& communicator);

}  // namespace lockstep::comm
