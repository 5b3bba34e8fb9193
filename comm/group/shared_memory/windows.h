// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/topology.h"

namespace lockstep::comm {

/// Memory of which every rank of a node owns one part and sees all parts.
struct SharedWindow {
  int id = 0;                     ///< the same on every rank
  std::size_t bytes = 0;          ///< of each rank's part
  std::vector<std::byte*> parts;  ///< by local rank, page-aligned
  MPI_Win handle = MPI_WIN_NULL;
  std::atomic<bool> released = false;  ///< its user is done with it; it is freed when every rank's is
};

/// The windows of a job. Creating and freeing one is a collective of all ranks, so a window whose user is done with it
/// waits for the next collective that may free it.
class SharedWindows {
 public:
  explicit SharedWindows(const Topology& topology);

  /// A zeroed window; null, on every rank alike, where some node lacks the memory. A collective of all ranks, each of
  /// which knows that the others are in it too.
  std::shared_ptr<SharedWindow> allocate(std::size_t bytes);
  /// Why the last allocate() gave null: "50.0 MiB needed, 12.3 MiB free in /dev/shm".
  const std::string& shortage() const { return shortage_; }

  struct Place {
    int window;
    std::int64_t offset;
  };
  /// Where these bytes of this rank lie, if in a window. Thread-safe.
  std::optional<Place> find(const void* data, std::size_t bytes) const;
  /// Every local rank's memory at a place that find() gave. Thread-safe.
  std::vector<std::byte*> parts(const Place& place) const;

  /// Frees every window. A collective as allocate().
  void free_all();

 private:
  bool agree_on_room(std::size_t bytes);
  void free_released();

  const Topology& topology_;
  std::string directory_;
  std::string shortage_;
  int next_id_ = 0;
  mutable std::mutex mutex_;  // guards windows_
  std::vector<std::shared_ptr<SharedWindow>> windows_;
};

}  // namespace lockstep::comm
