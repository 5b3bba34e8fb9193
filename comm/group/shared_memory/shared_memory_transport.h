// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group/reduction.h"
#include "comm/group/shared_memory/meeting.h"
#include "comm/group/shared_memory/neighbours.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// The transport itself, or, where the ranks of the group's nodes can share memory, one that uses it. A collective of
/// the group.
std::shared_ptr<Transport> with_shared_memory(std::shared_ptr<Transport> transport,
                                              std::shared_ptr<Neighbours> neighbours);

/// Collectives in the memory that the ranks of a node share, over whatever transport connects them.
///
/// A buffer that lies in a shared window is reduced in place; others are shown to each other in pieces of up to
/// kStagingBytes. On one node that is all, and the transport below only sets things up. Between nodes, the ranks with
/// the same place in their nodes exchange their slices through it, and it carries what is not reduced, and private
/// buffers beyond kStagingBytes, as if every rank were a node.
class SharedMemoryTransport final : public Transport {
 public:
  /// `meeting` of the ranks of this node; `across`: this rank's peers on the other nodes, null on one node.
  SharedMemoryTransport(std::shared_ptr<Transport> below, std::shared_ptr<Transport> across,
                        std::shared_ptr<Neighbours> neighbours, Topology topology,
                        std::unique_ptr<SharedMeeting> meeting);

  std::string description() const override { return below_->description() + ", shared memory"; }
  const std::vector<Operation>& meet(const Operation& mine) override;
  Storage allocate(std::size_t bytes) override;
  void all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data, std::int64_t count) override;
  void reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) override;
  void all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) override;
  void broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) override;
  std::shared_ptr<Transport> split(int color, int key, const std::string& name) override;
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) override {
    below_->inspect(mine, number, waited);
  }

 private:
  bool one_node() const { return across_ == nullptr; }
  /// Shows the ranks of this node `bytes` at the next meeting.
  void stage(const std::byte* data, std::size_t bytes, std::size_t offset = 0);
  std::vector<std::byte*> staged() const;
  /// `mine` with the place of the buffer, if it lies in a window.
  Operation placed(Operation mine, const std::byte* data, std::size_t bytes) const;
  /// The buffer in the memory of each rank of this node; empty unless all ranks have it at one place of one window.
  std::vector<std::byte*> common_parts(std::span<const Operation> operations) const;
  /// The arithmetic of a reduction over the ranks of this node, of which `operations` says what each rank does.
  Reduction reduction_in_node(const Operation& mine, std::span<const Operation> operations) const;
  /// The sum, or the maximum, of the nodes' partial results, in place.
  void reduce_across(const Operation& mine, std::byte* data, std::int64_t count);
  /// Reduces `count` elements of 16 bits, `offset` bytes into each part, for all ranks of all nodes, and rounds once: a
  /// node's partial sum travels in float32. Rounded on the way, it would overflow or not with the layout of the ranks.
  void reduce_wide_slice(const Operation& mine, const Reduction& reduction, const std::vector<std::byte*>& parts,
                         std::size_t offset, std::int64_t count);
  /// Reduces `parts`, each rank its slice, for all ranks of all nodes; ends with a meeting.
  void reduce_slices(const Operation& mine, std::span<const Operation> operations, const std::vector<std::byte*>& parts,
                     std::int64_t count);
  /// Reduces what the ranks have staged; the result goes to `data`.
  void reduce_staged(const Operation& mine, std::span<const Operation> operations, std::byte* data, std::int64_t count);

  std::shared_ptr<Transport> below_;
  std::shared_ptr<Transport> across_;
  std::shared_ptr<Neighbours> neighbours_;
  Topology topology_;
  std::vector<int> local_ranks_;  // world ranks of this node
  std::unique_ptr<SharedMeeting> meeting_;
  std::vector<float> wide_;  // this rank's slice of a 16-bit sum, between nodes
};

}  // namespace lockstep::comm
