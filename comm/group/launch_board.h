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
  /// A collective of all ranks: what rank 0 says about `subject`, "transport". A board serves each subject once. `own`
  /// is what this rank would say: not empty on rank 0, and of no account on the others. Throws PeerError where not all
  /// ranks come within the timeout, or rank 0 was started otherwise.
  virtual std::string word_of_rank_0(const std::string& subject, const std::string& own) = 0;
};

/// The board of mpirun and of srun --mpi=pmix: PMIx. MPI may be started and ended while it exists. Null where no such
/// launcher has started this process, or the build has no MPI. Throws EnvironmentError where the launcher does not
/// answer.
std::unique_ptr<LaunchBoard> launch_board(std::chrono::milliseconds timeout);

}  // namespace lockstep::comm
