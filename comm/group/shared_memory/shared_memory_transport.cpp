// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/shared_memory_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/group/shared_memory/wide_sum.h"

namespace lockstep::comm {

namespace {

// Below this, one meeting and two copies are faster than the two meetings of a reduction in place.
constexpr std::size_t kInPlaceBytes = 8 * 1024;
// Up to so many staged bytes of all ranks together, each rank reduces all of them: faster than a second meeting.
constexpr std::size_t kReducedByAll = 256 * 1024;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Calls f(begin, end) for pieces of [0, bytes) that can be staged; once for none, because ranks must still meet.
template <class F>
void for_each_piece(std::size_t bytes, std::size_t most, F f) {
  std::size_t begin = 0;
  do {
    const std::size_t end = std::min(begin + most, bytes);
    f(begin, end);
    begin = end;
  } while (begin < bytes);
}

/// Reduces `count` elements that begin `offset` bytes into every source and output.
void reduce_slice(const Reduction& reduction, const std::vector<std::byte*>& sources,
                  const std::vector<std::byte*>& outputs, std::size_t offset, std::int64_t count) {
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const std::byte* const source : sources) from.push_back(source + offset);
  for (std::byte* const output : outputs) to.push_back(output + offset);
  reduce(reduction, from, to, count);
}

bool is_private(const Operation& operation) { return operation.window < 0; }

}  // namespace

std::shared_ptr<Transport> with_shared_memory(std::shared_ptr<Transport> transport,
                                              std::shared_ptr<Neighbours> neighbours) {
  const Group& group = transport->group();
  const Topology topology = neighbours->seating().topology_of(group);
  std::shared_ptr<SharedWindow> window = neighbours->share(*transport, topology, sizeof(SharedMeeting::Block));
  if (!window) return transport;
  std::shared_ptr<Transport> across;
  if (!topology.one_node()) across = transport->split(topology.local_rank, transport->rank(), group.name);
  auto meeting = std::make_unique<SharedMeeting>(std::move(window), topology, transport->peers(), group.name,
                                                 transport->timeout());
  return std::make_shared<SharedMemoryTransport>(std::move(transport), std::move(across), std::move(neighbours),
                                                 topology, std::move(meeting));
}

SharedMemoryTransport::SharedMemoryTransport(std::shared_ptr<Transport> below, std::shared_ptr<Transport> across,
                                             std::shared_ptr<Neighbours> neighbours, Topology topology,
                                             std::unique_ptr<SharedMeeting> meeting)
    : Transport(below->group(), below->peers(), below->timeout()),
      below_(std::move(below)),
      across_(std::move(across)),
      neighbours_(std::move(neighbours)),
      topology_(std::move(topology)),
      meeting_(std::move(meeting)) {
  for (const int rank : topology_.local) local_ranks_.push_back(group().ranks[at(rank)]);
}

const std::vector<Operation>& SharedMemoryTransport::meet(const Operation& mine) {
  if (one_node()) return meeting_->meet(mine);
  // Below, where a rank that is late is known to all nodes; then here, for what was staged.
  const std::vector<Operation>& operations = below_->meet(mine);
  meeting_->meet(mine);
  return operations;
}

void SharedMemoryTransport::stage(const std::byte* data, std::size_t bytes, std::size_t offset) {
  if (bytes > 0) std::memcpy(meeting_->staging_to_come(topology_.local_rank) + offset, data, bytes);
}

std::vector<std::byte*> SharedMemoryTransport::staged() const {
  std::vector<std::byte*> parts;
  for (int r = 0; r < topology_.local_size(); ++r) parts.push_back(meeting_->staging(r));
  return parts;
}

Operation SharedMemoryTransport::placed(Operation mine, const std::byte* data, std::size_t bytes) const {
  if (bytes <= kInPlaceBytes) return mine;
  if (const auto place = neighbours_->windows().find(data, bytes)) {
    mine.window = place->window;
    mine.offset = place->offset;
  }
  return mine;
}

std::vector<std::byte*> SharedMemoryTransport::common_parts(std::span<const Operation> operations) const {
  const Operation& first = operations.front();
  const auto same_place = [&](const Operation& other) {
    return other.window == first.window && other.offset == first.offset;
  };
  if (is_private(first) || !std::ranges::all_of(operations, same_place)) return {};
  return neighbours_->windows().parts({first.window, first.offset}, local_ranks_);
}

Reduction SharedMemoryTransport::reduction_in_node(const Operation& mine, std::span<const Operation> operations) const {
  std::vector<float> premultiply;
  for (const int rank : topology_.local) premultiply.push_back(operations[at(rank)].premultiply);
  return reduction_of(mine, std::move(premultiply));
}

void SharedMemoryTransport::reduce_slices(const Operation& mine, std::span<const Operation> operations,
                                          const std::vector<std::byte*>& parts, std::int64_t count) {
  const Range slice = part_of(count, topology_.local_rank, topology_.local_size(), mine.dtype);
  const std::size_t offset = static_cast<std::size_t>(slice.begin) * size_of(mine.dtype);
  const Reduction reduction = reduction_in_node(mine, operations);
  if (one_node()) {
    reduce_slice(reduction, parts, parts, offset, slice.count());
  } else if (lockstep::is_reduced(mine.dtype) && mine.reduce != ReduceOp::kMax) {
    reduce_wide_slice(mine, reduction, parts, offset, slice.count());
  } else {
    std::byte* const own = parts[at(topology_.local_rank)];
    reduce_slice(reduction, parts, {own}, offset, slice.count());
    reduce_across(mine, own + offset, slice.count());
    for (std::byte* const part : parts) {
      if (part != own)
        std::memcpy(part + offset, own + offset, static_cast<std::size_t>(slice.count()) * size_of(mine.dtype));
    }
  }
  meeting_->meet(mine);
}

void SharedMemoryTransport::reduce_across(const Operation& mine, std::byte* data, std::int64_t count) {
  // Each node's partial result has its ranks' factors in it.
  Operation partial = mine;
  partial.premultiply = 1.0f;
  const std::vector<Operation> met(at(across_->size()), partial);
  across_->all_reduce(partial, met, data, count);
}

void SharedMemoryTransport::reduce_wide_slice(const Operation& mine, const Reduction& reduction,
                                              const std::vector<std::byte*>& parts, std::size_t offset,
                                              std::int64_t count) {
  std::vector<std::byte*> slices;
  for (std::byte* const part : parts) slices.push_back(part + offset);
  const std::vector<const std::byte*> sources(slices.begin(), slices.end());
  wide_.resize(at(count));
  reduce_wide(reduction, sources, count, wide_.data());
  Operation wide = mine;
  wide.dtype = DType::kFloat32;
  reduce_across(wide, reinterpret_cast<std::byte*>(wide_.data()), count);
  round_wide(wide_.data(), mine.dtype, count, slices);
}

void SharedMemoryTransport::reduce_staged(const Operation& mine, std::span<const Operation> operations, std::byte* data,
                                          std::int64_t count) {
  const std::vector<std::byte*> parts = staged();
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(mine.dtype);
  if (one_node() && bytes * parts.size() <= kReducedByAll) {
    reduce_slice(reduction_in_node(mine, operations), parts, {data}, 0, count);
    return;
  }
  reduce_slices(mine, operations, parts, count);
  std::memcpy(data, parts[at(topology_.local_rank)], bytes);
}

void SharedMemoryTransport::all_reduce(const Operation& mine, std::span<const Operation>, std::byte* data,
                                       std::int64_t count) {
  const std::size_t element = size_of(mine.dtype);
  const std::size_t bytes = static_cast<std::size_t>(count) * element;
  const std::size_t first_piece = std::min(bytes, kStagingBytes);
  Operation placed_mine = placed(mine, data, bytes);
  if (is_private(placed_mine)) stage(data, first_piece);
  const std::vector<Operation>& operations = meet(placed_mine);
  if (const std::vector<std::byte*> parts = common_parts(operations); !parts.empty()) {
    return reduce_slices(mine, operations, parts, count);
  }
  bool is_staged = std::ranges::all_of(operations, is_private);
  if (!one_node() && !(is_staged && bytes <= kStagingBytes)) return below_->all_reduce(mine, operations, data, count);
  for_each_piece(bytes, kStagingBytes, [&](std::size_t begin, std::size_t end) {
    if (!std::exchange(is_staged, false)) {
      stage(data + begin, end - begin);
      meet(mine);
    }
    reduce_staged(mine, operations, data + begin, static_cast<std::int64_t>((end - begin) / element));
  });
}

void SharedMemoryTransport::reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out,
                                           std::int64_t count) {
  if (!one_node()) return below_->reduce_scatter(mine, in, out, count);
  const std::size_t element = size_of(mine.dtype);
  const std::size_t bytes = static_cast<std::size_t>(count) * element;
  const auto reduce_own = [&](std::span<const Operation> operations, std::vector<std::byte*> parts, std::size_t offset,
                              std::size_t begin, std::size_t end) {
    for (std::byte*& part : parts) part += offset;
    reduce_slice(reduction_in_node(mine, operations), parts, {out + begin}, 0,
                 static_cast<std::int64_t>((end - begin) / element));
  };
  // As much of each rank's slice as there is room for.
  const std::size_t most = std::max<std::size_t>(kStagingBytes / at(size()) / element, 1) * element;
  const auto stage_piece = [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = 0; r < at(size()); ++r) stage(in + r * bytes + begin, end - begin, r * (end - begin));
  };
  const Operation placed_mine = placed(mine, in, bytes * at(size()));
  if (is_private(placed_mine)) stage_piece(0, std::min(bytes, most));
  const std::vector<Operation>& operations = meet(placed_mine);
  if (const std::vector<std::byte*> parts = common_parts(operations); !parts.empty()) {
    reduce_own(operations, parts, at(rank()) * bytes, 0, bytes);
    meet(mine);
    return;
  }
  bool is_staged = std::ranges::all_of(operations, is_private);
  for_each_piece(bytes, most, [&](std::size_t begin, std::size_t end) {
    if (!std::exchange(is_staged, false)) {
      stage_piece(begin, end);
      meet(mine);
    }
    reduce_own(operations, staged(), at(rank()) * (end - begin), begin, end);
  });
}

void SharedMemoryTransport::all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) {
  if (!one_node()) return below_->all_gather(mine, in, out, bytes);
  const auto length = static_cast<std::size_t>(bytes);
  for_each_piece(length, kStagingBytes, [&](std::size_t begin, std::size_t end) {
    stage(in + begin, end - begin);
    meet(mine);
    for (int r = 0; r < size() && end > begin; ++r) {
      std::memcpy(out + at(r) * length + begin, meeting_->staging(r), end - begin);
    }
  });
}

void SharedMemoryTransport::broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) {
  if (!one_node()) return below_->broadcast(mine, data, bytes);
  const bool sends = rank() == mine.root;
  for_each_piece(static_cast<std::size_t>(bytes), kStagingBytes, [&](std::size_t begin, std::size_t end) {
    if (sends) stage(data + begin, end - begin);
    meet(mine);
    if (!sends && end > begin) std::memcpy(data + begin, meeting_->staging(mine.root), end - begin);
  });
}

Storage SharedMemoryTransport::allocate(std::size_t bytes) {
  meet({.kind = OperationKind::kAllocate, .count = static_cast<std::int64_t>(bytes)});
  std::shared_ptr<SharedWindow> window = neighbours_->share(*below_, topology_, bytes);
  if (!window) return private_memory(bytes);
  std::byte* const own = window->own;
  return Storage::counted(own, bytes, kCpu, [window = std::move(window)] {});
}

std::shared_ptr<Transport> SharedMemoryTransport::split(int color, int key, const std::string& name) {
  meet({.kind = OperationKind::kNewChannel});
  return below_->split(color, key, name);
}

}  // namespace lockstep::comm
