// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/group/collective_costs.h"
#include "comm/group/communicator.h"
#include "runtime/train/step_profile.h"

namespace lockstep::train {

/// The shortest all-reduces of all ranks: of one number, and of 4 MiB. A collective.
TransportFloor measure_transport(comm::Communicator& communicator);

/// How ranks reach each other, as far as the run's ranks can tell.
struct MeasuredLinks {
  comm::RankLayout layout;     ///< the run's; its hosts have as many ranks as this one
  bool spare_cores = false;    ///< whether a rank has a core that computes nothing, for reductions
  bool in_host = false;        ///< whether `links` has the host's speed
  bool between_hosts = false;  ///< whether it has the network's
  comm::RankLinks links;       ///< 0 where it was not measured
};

/// Where this rank's run has its ranks. A collective.
comm::RankLayout layout_of(comm::Communicator& communicator);

/// Takes the median times of all-reduces between the ranks of each host, and between the hosts' first ranks. The
/// network's are those with which comm::all_reduce_cost() gives the measured times. `threads`: with which a rank
/// computes. Ranks of the CPU. A collective.
MeasuredLinks measure_links(comm::Communicator& communicator, int threads);

}  // namespace lockstep::train
