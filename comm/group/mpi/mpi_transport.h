// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/mpi/mpi_comm.h"
#include "comm/group/mpi/mpi_exchange.h"
#include "comm/group/mpi/mpi_membership.h"
#include "comm/group/shared_memory/meeting.h"

namespace lockstep::comm {

/// The collectives of one channel, for one thread at a time; each has finished when it returns.
///
/// The ranks of a node work in shared memory where they can: buffers of up to kStagingBytes are shown to each other at
/// one meeting, larger ones are reduced in place if they lie in a shared window. Between nodes, the ranks with the same
/// local index exchange their slices through MPI. Everything else goes through MPI as if every rank were a node.
class MpiChannel {
 public:
  /// The first channel of a job. Like all that sets something up in MPI, it waits without a timeout for ranks that are
  /// known to come.
  explicit MpiChannel(std::shared_ptr<MpiMembership> runtime);
  /// Another one; `world` has the ranks of the first one's, and no other user.
  MpiChannel(std::shared_ptr<MpiMembership> runtime, std::string name, MPI_Comm world);

  const Topology& topology() const { return runtime_->topology(); }
  int rank() const { return topology().rank; }
  int size() const { return topology().size; }
  std::string description() const { return node_ ? "mpi, shared memory" : "mpi"; }

  // As in Communicator.
  Storage allocate(std::size_t bytes);
  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply);
  void broadcast(const Tensor& buffer, int root);
  void all_gather(const Tensor& in, const Tensor& out);
  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op);
  void barrier();
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) {
    world_.inspect(mine, number, waited);
  }
  std::chrono::nanoseconds waited() const { return runtime_->peers().waits().total(); }
  std::shared_ptr<MpiChannel> duplicate(const std::string& name);

 private:
  /// Waits for all ranks and returns what each is about to do; what a rank staged before can be read after.
  const std::vector<Operation>& meet(const Operation& mine);
  /// Shows the ranks of this node, if they share memory, `bytes` at the next meeting.
  void stage(const void* data, std::size_t bytes);
  std::vector<std::byte*> staged() const;
  /// This buffer in every local rank's memory; empty unless all ranks have it at one place of one window.
  std::vector<std::byte*> shared_parts(const std::vector<Operation>& operations) const;
  Operation with_place(Operation mine, const Tensor& buffer) const;
  void reduce_in_node(const Operation& mine, const std::vector<Operation>& operations,
                      const std::vector<std::byte*>& parts);

  void reduce_staged(const Operation& mine, const std::vector<Operation>& operations, const Tensor& buffer);

  bool one_node() const { return topology().local_size() == topology().size; }

  std::shared_ptr<MpiMembership> runtime_;
  std::string name_;
  MpiComm world_;
  std::optional<MpiComm> across_;        // with node_: this local rank's peers on the other nodes
  std::unique_ptr<SharedMeeting> node_;  // null where the ranks share no memory
};

}  // namespace lockstep::comm
