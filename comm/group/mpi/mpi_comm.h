// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/liveness/peers.h"
#include "comm/group/mpi/mpi_library.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// Collectives over an MPI communicator, each with a timeout. Each is a nonblocking MPI call that is polled; the MPI
/// mutex is free between polls, so that two threads may be in collectives of two groups at once.
class MpiComm {
 public:
  /// `group`: the ranks of `comm`, in its order. `comm` stays the caller's.
  MpiComm(MPI_Comm comm, Group group, Peers& peers, std::chrono::milliseconds timeout);
  ~MpiComm();

  int rank() const { return group_.rank; }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  MPI_Comm comm() const { return comm_; }

  /// Waits for every rank and returns what each is about to do, in the group's order. Throws PeerError when one is
  /// late, gone, or does something else.
  const std::vector<Operation>& meet(const Operation& mine);

  /// Starts a nonblocking MPI call. `operation` is for messages. Several may be under way; every rank starts and
  /// finishes them in the same order.
  MPI_Request start(const Operation& operation, const std::function<int(MPI_Request*)>& call);
  /// Waits until it is complete.
  void finish(const Operation& operation, MPI_Request& request);
  /// Both.
  void complete(const Operation& operation, const std::function<int(MPI_Request*)>& call);

  /// Transport::inspect. May be called beside a call of another thread.
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited);

 private:
  class RollCall;
  /// Loses the ranks where MPI reports an error.
  void require_success(int code, const Operation& operation);
  /// Where a rank waits.
  struct Wait {
    std::int64_t number = 0;  ///< of calls completed before
    Operation operation;
  };

  MPI_Comm comm_;
  Group group_;
  Peers& peers_;
  std::chrono::milliseconds timeout_;
  std::vector<Operation> operations_;
  Wait wait_;                              // of the thread that calls
  Wait device_wait_;                       // what inspect() tells of
  std::unique_ptr<RollCall> device_call_;  // that of device_wait_
};

}  // namespace lockstep::comm
