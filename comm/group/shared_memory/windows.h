// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/seating.h"
#include "comm/group/shared_memory/shared_file.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// Memory of which every rank of a node owns one part and sees all parts, in one mapping.
struct SharedWindow {
  std::int64_t id = 0;            ///< the same on every rank, and no other window's in this job
  std::size_t bytes = 0;          ///< of each rank's part
  std::vector<int> ranks;         ///< world ranks, by part
  std::vector<std::byte*> parts;  ///< page-aligned
  std::byte* own = nullptr;       ///< this rank's
  Mapping mapping;
};

/// The windows that this process has now. Each lives as long as its user: what other ranks still see of it does not end
/// with it. Thread-safe.
class SharedWindows : public std::enable_shared_from_this<SharedWindows> {
 public:
  explicit SharedWindows(int world_rank) : world_rank_(world_rank) {}

  /// A zeroed window of the ranks of `group` in this node; null, on every rank of the group alike, where some node
  /// lacks the memory. A collective of the group.
  std::shared_ptr<SharedWindow> allocate(Transport& group, const Topology& topology, std::size_t bytes);
  /// Why the last allocate() gave null: "50.0 MiB needed by each of 2 ranks, 12.3 MiB free".
  std::string shortage() const;

  struct Place {
    std::int64_t window;
    std::int64_t offset;
  };
  /// Where these bytes of this rank lie, if in a window.
  std::optional<Place> find(const void* data, std::size_t bytes) const;
  /// The memory of these world ranks at a place that find() gave; empty where one of them has no part of the window.
  std::vector<std::byte*> parts(const Place& place, const std::vector<int>& ranks) const;

 private:
  std::int64_t next_id();
  std::int64_t room(MemoryName::Kind kind) const;
  bool fits(std::size_t bytes, int ranks, std::int64_t available, MemoryName::Kind kind);
  std::shared_ptr<SharedWindow> add(std::unique_ptr<SharedWindow> window);

  int world_rank_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<const SharedWindow*> windows_;
  std::int64_t made_ = 0;
  std::string shortage_;
};

}  // namespace lockstep::comm
