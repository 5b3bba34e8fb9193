// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "comm/group/seating.h"
#include "comm/group/shared_memory/windows.h"

namespace lockstep::comm {

/// The ranks around this one: which of them are where, and the memory that it shares with those of its node.
class Neighbours {
 public:
  /// A collective of all ranks. From here on peers() watches the processes of this machine, and, with `shared_memory`,
  /// sees the states of the node's ranks.
  Neighbours(Transport& world, bool shared_memory);

  const Seating& seating() const { return seating_; }

  /// A window of the ranks of `group` in this node; null, on all ranks of the group alike, where there can be none. A
  /// failed allocation is logged once, by world rank 0. A collective of the group.
  std::shared_ptr<SharedWindow> share(Transport& group, const Topology& topology, std::size_t bytes);
  SharedWindows& windows() { return *windows_; }

 private:
  void publish_states(Transport& world);

  Seating seating_;
  bool shared_memory_;
  std::shared_ptr<SharedWindows> windows_;
  std::atomic<bool> warned_ = false;
};

}  // namespace lockstep::comm
