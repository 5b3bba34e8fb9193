// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/liveness/peers.h"
#include "comm/group/operation.h"
#include "runtime/tensor/storage.h"

namespace lockstep::comm {

/// The ranks of a channel.
struct Group {
  std::string name;        ///< the channel's, for messages
  int rank = 0;            ///< this process's place in `ranks`
  std::vector<int> ranks;  ///< world ranks, in the group's order
};

/// Collectives between the CPUs of a group's ranks, on plain bytes, for one thread at a time; each has finished when it
/// returns. The arguments have been checked. Every rank makes the same calls in the same order; PeerError for ranks
/// that are late, gone or disagree.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const Group& group() const { return group_; }
  int rank() const { return group_.rank; }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  Peers& peers() const { return peers_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// "mpi", "tcp"; "tcp, shared memory"
  virtual std::string description() const = 0;

  /// Waits for every rank and returns what each is about to do, in the group's order.
  virtual const std::vector<Operation>& meet(const Operation& mine) = 0;

  /// Communicator::allocate; private memory, unless the transport knows better.
  virtual Storage allocate(std::size_t bytes);

  // Each collective meets by itself. `mine` is the operation as the ranks compare it and as messages describe it.

  /// data = reduction of the ranks' `count` elements, in place; they may be a slice of what `mine` counts. `met`: what
  /// each rank is about to do, where they have met for this; else empty.
  virtual void all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data,
                          std::int64_t count) = 0;
  /// out = this rank's `count` elements of the reduction of the ranks' in, which has size() * count elements.
  virtual void reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) = 0;
  /// out = the ranks' in, `bytes` each, one after the other; `in` may lie in its place in out.
  virtual void all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) = 0;
  /// data = that of rank mine.root.
  virtual void broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) = 0;

  /// A channel of the ranks that give the same color, ordered by key, then by rank; null for a negative color.
  virtual std::shared_ptr<Transport> split(int color, int key, const std::string& name) = 0;

  /// WaitInspection::inspect. May be called beside a call of another thread.
  virtual void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) = 0;

 protected:
  Transport(Group group, Peers& peers, std::chrono::milliseconds timeout)
      : group_(std::move(group)), peers_(peers), timeout_(timeout) {}

 private:
  Group group_;
  Peers& peers_;
  std::chrono::milliseconds timeout_;
};

/// The `value` of every rank, in the group's order. The ranks use it to agree on what they set up.
template <class T>
std::vector<T> gather(Transport& transport, const Operation& mine, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(transport.size()));
  transport.all_gather(mine, reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(values.data()),
                       sizeof value);
  return values;
}

/// Zeroed memory of this process alone.
Storage private_memory(std::size_t bytes);

}  // namespace lockstep::comm
