// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group/communicator.h"
#include "comm/group/launch_environment.h"
#include "comm/group/liveness/peers.h"
#include "comm/group/membership.h"
#include "comm/group/mpi/mpi_library.h"
#include "comm/group/shared_memory/windows.h"
#include "comm/group/topology.h"

namespace lockstep::comm {

/// What every channel of a job shares. Starts MPI and ends it, in order, with all ranks; after an error it leaves MPI
/// alone, because ending it waits for the others.
class MpiMembership final : public Membership {
 public:
  /// Throws EnvironmentError unless MPI finds as many ranks as `environment` promises.
  MpiMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options);
  MpiMembership(const MpiMembership&) = delete;
  MpiMembership& operator=(const MpiMembership&) = delete;
  ~MpiMembership() override;

  void fail() override { peers_.fail(); }
  void abort(int exit_code) override;

  const Topology& topology() const { return topology_; }
  const CommunicatorOptions& options() const { return options_; }
  std::chrono::duration<double, std::milli> mpi_start_time() const { return library_.start_time(); }
  Peers& peers() { return peers_; }
  SharedWindows& windows() { return windows_; }

  /// A communicator with the ranks of `comm`, which this object frees. A collective of them.
  MPI_Comm duplicate(MPI_Comm comm);
  /// Logs, on rank 0 and once, that shared memory is too small.
  void warn_of_shortage();

 private:
  void publish_states();

  CommunicatorOptions options_;
  MpiLibrary library_;
  Topology topology_;
  Peers peers_;
  SharedWindows windows_;
  std::vector<MPI_Comm> comms_;
  bool warned_ = false;
};

}  // namespace lockstep::comm
