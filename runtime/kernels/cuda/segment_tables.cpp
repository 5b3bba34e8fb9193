// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/segment_tables.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/tensor/cuda/capture.h"
#include "runtime/tensor/cuda/check.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/memory.h"

namespace lockstep::kernels::cuda {

namespace {

// Segments are compared and uploaded as bytes.
static_assert(std::is_trivially_copyable_v<ArenaSegment> && sizeof(ArenaSegment) == 32, "no padding");

/// While it lives, the calling thread may allocate, copy and wait on streams that no graph captures, though another of
/// its streams is being captured.
class BesideCapture {
 public:
  BesideCapture() { exchange(); }
  ~BesideCapture() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    gpu::capturing() = was_capturing_;
  }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  void exchange() { gpu::check(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode"); }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  const bool was_capturing_ = std::exchange(gpu::capturing(), false);
};

std::string key_of(std::int64_t base, std::span<const ArenaSegment> segments) {
  std::string key(sizeof(base) + segments.size_bytes(), '\0');
  std::memcpy(key.data(), &base, sizeof(base));
  if (!segments.empty()) std::memcpy(key.data() + sizeof(base), segments.data(), segments.size_bytes());
  return key;
}

}  // namespace

SegmentTables::SegmentTables(Device device)
    : device_(device), stream_(gpu::make_stream(device, "segments", gpu::StreamPriority::kGreatest)) {}

SegmentTable SegmentTables::find(std::int64_t base, std::span<const ArenaSegment> segments) {
  std::string key = key_of(base, segments);
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second.table;
  return tables_.emplace(std::move(key), upload(base, segments)).first->second.table;
}

SegmentTables::Uploaded SegmentTables::upload(std::int64_t base, std::span<const ArenaSegment> segments) const {
  std::vector<Tile> tiles;
  std::vector<std::int64_t> first_tile;
  for (const ArenaSegment& segment : segments) {
    first_tile.push_back(static_cast<std::int64_t>(tiles.size()));
    const std::int64_t end = segment.end - base;
    for (std::int64_t begin = segment.begin - base; begin < end;) {
      const std::int64_t next = std::min(end, begin + kTileElements);
      tiles.push_back({.begin = begin,
                       .count = static_cast<std::int32_t>(next - begin),
                       .segment = static_cast<std::int32_t>(first_tile.size() - 1)});
      begin = next;
    }
  }
  first_tile.push_back(static_cast<std::int64_t>(tiles.size()));

  const std::size_t tile_bytes = tiles.size() * sizeof(Tile);
  const std::size_t first_tile_bytes = first_tile.size() * sizeof(std::int64_t);
  std::vector<std::byte> bytes(tile_bytes + segments.size_bytes() + first_tile_bytes);
  if (!tiles.empty()) std::memcpy(bytes.data(), tiles.data(), tile_bytes);
  if (!segments.empty()) std::memcpy(bytes.data() + tile_bytes, segments.data(), segments.size_bytes());
  std::memcpy(bytes.data() + tile_bytes + segments.size_bytes(), first_tile.data(), first_tile_bytes);

  const BesideCapture beside_capture;
  const gpu::ScopedStream scope(stream_);
  const MemoryScope purpose(MemoryPurpose::kSegmentTables);
  const Storage storage = Storage::allocate(bytes.size(), device_);
  gpu::copy(storage.data(), bytes.data(), bytes.size(), stream_);
  stream_.synchronize();
  const auto* data = static_cast<const std::byte*>(storage.data());
  const std::byte* segment_data = data + tile_bytes;
  return {.table = {.tiles = reinterpret_cast<const Tile*>(data),
                    .segments = reinterpret_cast<const ArenaSegment*>(segment_data),
                    .first_tile = reinterpret_cast<const std::int64_t*>(segment_data + segments.size_bytes()),
                    .tile_count = static_cast<std::int64_t>(tiles.size()),
                    .segment_count = static_cast<std::int64_t>(segments.size())},
          .storage = storage};
}

}  // namespace lockstep::kernels::cuda
