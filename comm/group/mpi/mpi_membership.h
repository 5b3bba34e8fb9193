// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "comm/group/communicator.h"
#include "comm/group/join.h"
#include "comm/group/launch_environment.h"
#include "comm/group/mpi/mpi_comm.h"
#include "comm/group/mpi/mpi_library.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// One of several ranks that MPI knows. Starts MPI and ends it, in order, with all ranks; after an error it leaves MPI
/// alone, because ending it waits for the others.
class MpiMembership final : public Membership {
 public:
  /// Throws EnvironmentError unless MPI finds as many ranks as `environment` promises, PeerError where they do not
  /// reach each other within the timeout.
  MpiMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options);
  MpiMembership(const MpiMembership&) = delete;
  MpiMembership& operator=(const MpiMembership&) = delete;
  ~MpiMembership() override;

  void fail() override { peers_.fail(); }
  void abort(int exit_code) override;

  /// All ranks. Each rank announces its end on their communicator, so the others find out a rank that ends while they
  /// still work.
  const Group& world() const { return world_; }
  MPI_Comm world_comm() const { return comms_.front(); }
  std::chrono::milliseconds timeout() const { return timeout_; }
  std::chrono::duration<double, std::milli> mpi_start_time() const { return library_.start_time(); }
  Peers& peers() { return peers_; }

  /// MPI_Comm_split, of which a negative color gives MPI_COMM_NULL. This object frees the result.
  MPI_Comm split(MPI_Comm comm, int color, int key);

 private:
  std::chrono::milliseconds timeout_;
  MpiLibrary library_;
  Group world_;
  Peers peers_;
  MpiComm start_;  ///< MPI's own communicator of all ranks; after an error its messages may still be on their way
  std::vector<MPI_Comm> comms_;
};

}  // namespace lockstep::comm
