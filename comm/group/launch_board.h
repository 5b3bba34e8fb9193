// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace lockstep::comm {

/// Where the launcher of ranks passes on what rank 0 says, before any two ranks are connected.
class LaunchBoard {
 public:
  virtual ~LaunchBoard() = default;
  /// What rank 0 says under `name`, which is used once; it is not empty. A collective of all ranks; what the others say
  /// does not count. Throws PeerError where not all ranks come within the timeout, or rank 0 was started otherwise.
  virtual std::string word_of_rank_0(const std::string& name, const std::string& own) = 0;
};

/// That of mpirun and of srun --mpi=pmix, which is PMIx; MPI may be started while it is there. Null where this process
/// has no such launcher, or the build no MPI. Throws EnvironmentError where the launcher is there and does not answer.
std::unique_ptr<LaunchBoard> launch_board(std::chrono::milliseconds timeout);

}  // namespace lockstep::comm
