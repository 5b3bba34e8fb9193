// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "runtime/kernels/arena.h"
#include "runtime/tensor/stream.h"

namespace lockstep::kernels::cuda {

/// A part of one segment, the work of one block; in elements of the slice. Tiles of a segment end at multiples of
/// kTileElements of the slice, so that only the first one's begin can be unaligned.
struct Tile {
  std::int64_t begin = 0;
  std::int32_t count = 0;
  std::int32_t segment = 0;
};

/// Small enough that the last blocks of a slice keep the device busy, large enough to hide how a block begins.
constexpr std::int64_t kTileElements = 8192;

/// A list of segments on the device.
struct SegmentTable {
  const Tile* tiles = nullptr;               ///< by segment, ascending
  const ArenaSegment* segments = nullptr;    ///< as the host has them
  const std::int64_t* first_tile = nullptr;  ///< [segments + 1]: where each segment's tiles begin
  std::int64_t tile_count = 0;
  std::int64_t segment_count = 0;
};

/// Device copies of the host's segment lists. A list is uploaded, and waited for, when its content is first seen, and
/// stays where it is: a captured graph may refer to it, and a step that has run once uploads nothing more. There are as
/// many lists as buckets and optimizers, so none is ever dropped. Thread-safe.
class SegmentTables {
 public:
  explicit SegmentTables(Device device);

  /// The table of `segments` in a slice whose first element has the arena offset `base`; for any stream of the device.
  SegmentTable find(std::int64_t base, std::span<const ArenaSegment> segments);

 private:
  struct Uploaded {
    SegmentTable table;
    Storage storage;
  };
  Uploaded upload(std::int64_t base, std::span<const ArenaSegment> segments) const;

  Device device_;
  Stream stream_;  ///< its own: no other work is waited for
  std::mutex mutex_;
  std::map<std::string, Uploaded> tables_;  ///< by the bytes of base and segments
};

}  // namespace lockstep::kernels::cuda
