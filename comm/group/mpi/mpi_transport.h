// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group/mpi/mpi_comm.h"
#include "comm/group/mpi/mpi_membership.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// The collectives of a channel through MPI, as if every rank were on a node of its own.
class MpiTransport final : public Transport {
 public:
  /// `comm` has the ranks of the group, and no other user.
  MpiTransport(std::shared_ptr<MpiMembership> membership, Group group, MPI_Comm comm);

  std::string description() const override { return "mpi"; }
  const std::vector<Operation>& meet(const Operation& mine) override { return comm_.meet(mine); }
  void all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data, std::int64_t count) override;
  void reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) override;
  void all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) override;
  void broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) override;
  /// MPI makes a communicator only in a call that waits without a timeout, so the ranks meet first.
  std::shared_ptr<Transport> split(int color, int key, const std::string& name) override;
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) override {
    comm_.inspect(mine, number, waited);
  }

 private:
  std::shared_ptr<MpiMembership> membership_;
  MpiComm comm_;
};

}  // namespace lockstep::comm
