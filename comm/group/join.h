// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "comm/group/communicator.h"
#include "comm/group/launch_board.h"
#include "comm/group/launch_environment.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// This process's part in a job of several ranks. The destructor waits for the other ranks, unless an error was met.
class Membership {
 public:
  virtual ~Membership() = default;
  /// Tells the others that this rank makes no more calls after an error.
  virtual void fail() = 0;
  /// Makes every other process of the job end with this code, and does not wait for it; the caller then ends this one.
  virtual void abort(int exit_code) = 0;
};

/// The parts that a process has once it is one of several ranks.
struct Joined {
  std::shared_ptr<Membership> membership;
  std::shared_ptr<Transport> transport;  ///< of the first channel, which has all ranks
  std::chrono::duration<double, std::milli> mpi_start_time{0};
};

/// Through MPI; mpi/ implements this, and no_mpi/ stands in for it in a build without. Throws EnvironmentError unless
/// MPI finds as many ranks as `environment` promises.
Joined join_mpi(const LaunchEnvironment& environment, const CommunicatorOptions& options);

/// Joins over TCP, through rank 0 (tcp/rendezvous.h), which says on `board` where it is; without a board, the
/// environment does. Every build has this. Throws PeerError that names the ranks that do not come, UsageError for a
/// missing or wrong variable, EnvironmentError where rank 0 cannot listen or refuses.
Joined join_tcp(const LaunchEnvironment& environment, const CommunicatorOptions& options, LaunchBoard* board);

}  // namespace lockstep::comm
