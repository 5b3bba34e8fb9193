// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_transport.h"

#include <algorithm>
#include <cstring>

namespace lockstep::comm {

namespace {

std::byte* bytes_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data()); }

// Below this, one meeting and two copies are faster than the two meetings of a reduction in place.
constexpr std::size_t kInPlaceBytes = 8 * 1024;

/// The arithmetic of `operation` over `ranks`. Those that lead a partial result bring a premultiply of 1.
Reduction reduction_over(const std::vector<int>& ranks, const Operation& operation,
                         const std::vector<Operation>* operations) {
  std::vector<float> premultiply;
  for (const int rank : ranks) {
    premultiply.push_back(operations == nullptr ? 1.0f : (*operations)[static_cast<std::size_t>(rank)].premultiply);
  }
  return reduction_of(operation, std::move(premultiply));
}

/// rank_reduce of `count` elements that begin `offset` bytes into every source and output.
void reduce_slice(const Reduction& reduction, const std::vector<std::byte*>& sources,
                  const std::vector<std::byte*>& outputs, std::int64_t offset, std::int64_t count) {
  std::vector<const void*> from;
  std::vector<void*> to;
  for (std::byte* const source : sources) from.push_back(source + offset);
  for (std::byte* const output : outputs) to.push_back(output + offset);
  kernels::rank_reduce(reduction.kind, reduction.dtype, count, from, reduction.premultiply, reduction.factor, to);
}

/// Calls f(begin, end) for pieces of [0, bytes) that can be staged; once for none, because ranks must still meet.
template <class F>
void for_each_stage(std::size_t bytes, F f) {
  std::size_t begin = 0;
  do {
    const std::size_t end = std::min(begin + kStagingBytes, bytes);
    f(begin, end);
    begin = end;
  } while (begin < bytes);
}

}  // namespace

// On the communicator on which the runtime takes leave: a rank that leaves while others work is found out.
MpiChannel::MpiChannel(std::shared_ptr<MpiMembership> runtime)
    : MpiChannel(runtime, kFirstChannel, runtime->topology().world) {}

MpiChannel::MpiChannel(std::shared_ptr<MpiMembership> runtime, std::string name, MPI_Comm world)
    : runtime_(std::move(runtime)),
      name_(std::move(name)),
      world_(world, topology().world_ranks, runtime_->peers(), name_, runtime_->options().timeout) {
  const auto timeout = runtime_->options().timeout;
  if (!runtime_->options().shared_memory || !topology().uniform || topology().local_size() == 1) return;
  const std::shared_ptr<SharedWindow> window = runtime_->windows().allocate(sizeof(SharedMeeting::Block));
  if (!window) {
    runtime_->warn_of_shortage();
    return;
  }
  node_ = std::make_unique<SharedMeeting>(window, topology(), runtime_->peers(), name_, timeout);
  if (!one_node()) {
    across_.emplace(runtime_->duplicate(topology().across), topology().across_ranks, runtime_->peers(), name_, timeout);
  }
  world_.meet({});  // every rank has constructed its block
}

const std::vector<Operation>& MpiChannel::meet(const Operation& mine) {
  if (!node_) return world_.meet(mine);
  if (one_node()) return node_->meet(mine);
  const std::vector<Operation>& operations = world_.meet(mine);
  node_->meet(mine);
  return operations;
}

void MpiChannel::stage(const void* data, std::size_t bytes) {
  if (node_) std::memcpy(node_->staging_to_come(topology().local_rank), data, bytes);
}

std::vector<std::byte*> MpiChannel::staged() const {
  std::vector<std::byte*> parts;
  for (int r = 0; r < topology().local_size(); ++r) parts.push_back(node_->staging(r));
  return parts;
}

Operation MpiChannel::with_place(Operation mine, const Tensor& buffer) const {
  if (!node_) return mine;
  if (const auto place = runtime_->windows().find(buffer.data(), buffer.bytes())) {
    mine.window = place->window;
    mine.offset = place->offset;
  }
  return mine;
}

std::vector<std::byte*> MpiChannel::shared_parts(const std::vector<Operation>& operations) const {
  const Operation& first = operations.front();
  const auto same_place = [&](const Operation& other) {
    return other.window == first.window && other.offset == first.offset;
  };
  if (first.window < 0 || !std::ranges::all_of(operations, same_place)) return {};
  return runtime_->windows().parts({first.window, first.offset});
}

void MpiChannel::reduce_in_node(const Operation& mine, const std::vector<Operation>& operations,
                                const std::vector<std::byte*>& parts) {
  const Range slice = part_of(mine.count, topology().local_rank, topology().local_size(), mine.dtype);
  const std::int64_t offset = slice.begin * static_cast<std::int64_t>(size_of(mine.dtype));
  const Reduction local = reduction_over(topology().local_ranks, mine, &operations);
  if (one_node()) {
    reduce_slice(local, parts, parts, offset, slice.count());
  } else {
    std::byte* const own = parts[static_cast<std::size_t>(topology().local_rank)];
    reduce_slice(local, parts, {own}, offset, slice.count());
    comm::all_reduce(*across_, mine, reduction_over(topology().across_ranks, mine, nullptr), own + offset,
                     slice.count());
    for (std::byte* const part : parts) {
      if (part != own) std::memcpy(part + offset, own + offset, slice.count() * size_of(mine.dtype));
    }
  }
  node_->meet(mine);
}

void MpiChannel::all_reduce(const Tensor& buffer, ReduceOp op, float premultiply) {
  Operation mine{.kind = OperationKind::kAllReduce,
                 .reduce = op,
                 .dtype = buffer.dtype(),
                 .count = buffer.numel(),
                 .premultiply = premultiply};
  if (buffer.bytes() > kInPlaceBytes) mine = with_place(mine, buffer);
  const bool stages = buffer.bytes() <= kStagingBytes && mine.window < 0;
  if (stages) stage(buffer.data(), buffer.bytes());
  const std::vector<Operation>& operations = meet(mine);

  const auto elsewhere = [](const Operation& operation) { return operation.window < 0; };
  if (const std::vector<std::byte*> parts = shared_parts(operations); !parts.empty()) {
    reduce_in_node(mine, operations, parts);
  } else if (node_ && stages && std::ranges::all_of(operations, elsewhere)) {
    reduce_staged(mine, operations, buffer);
  } else {
    comm::all_reduce(world_, mine, reduction_over(world_.ranks(), mine, &operations), bytes_of(buffer), mine.count);
  }
}

void MpiChannel::reduce_staged(const Operation& mine, const std::vector<Operation>& operations, const Tensor& buffer) {
  const std::vector<std::byte*> parts = staged();
  if (one_node()) {
    // Everyone computes all of it: for so little that is faster than a second meeting.
    reduce_slice(reduction_over(topology().local_ranks, mine, &operations), parts, {bytes_of(buffer)}, 0, mine.count);
  } else {
    reduce_in_node(mine, operations, parts);
    std::memcpy(buffer.data(), parts[static_cast<std::size_t>(topology().local_rank)], buffer.bytes());
  }
}

void MpiChannel::reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op) {
  Operation mine{.kind = OperationKind::kReduceScatter, .reduce = op, .dtype = in.dtype(), .count = in.numel()};
  const auto offset = static_cast<std::int64_t>(out.bytes()) * topology().rank;
  const auto reduce = [&](const std::vector<Operation>& operations, std::vector<std::byte*> parts) {
    for (std::byte*& part : parts) part += offset;
    reduce_slice(reduction_over(topology().local_ranks, mine, &operations), parts, {bytes_of(out)}, 0, out.numel());
  };
  const bool stages = in.bytes() <= kStagingBytes;
  if (stages) {
    stage(in.data(), in.bytes());
  } else {
    mine = with_place(mine, in);
  }
  const std::vector<Operation>& operations = meet(mine);
  const std::vector<std::byte*> parts = shared_parts(operations);
  if (node_ && one_node() && stages) {
    reduce(operations, staged());
  } else if (one_node() && !parts.empty()) {
    reduce(operations, parts);
    node_->meet(mine);
  } else {
    comm::reduce_scatter(world_, mine, reduction_over(world_.ranks(), mine, &operations), bytes_of(in), bytes_of(out),
                         out.numel());
  }
}

void MpiChannel::all_gather(const Tensor& in, const Tensor& out) {
  const Operation mine{.kind = OperationKind::kAllGather, .dtype = in.dtype(), .count = in.numel()};
  if (!node_ || !one_node()) {
    meet(mine);
    comm::all_gather(world_, mine, bytes_of(in), bytes_of(out), static_cast<std::int64_t>(in.bytes()));
    return;
  }
  for_each_stage(in.bytes(), [&](std::size_t begin, std::size_t end) {
    stage(bytes_of(in) + begin, end - begin);
    meet(mine);
    for (int r = 0; r < topology().size; ++r) {
      std::memcpy(bytes_of(out) + static_cast<std::size_t>(r) * in.bytes() + begin, node_->staging(r), end - begin);
    }
  });
}

void MpiChannel::broadcast(const Tensor& buffer, int root) {
  const Operation mine{
      .kind = OperationKind::kBroadcast, .dtype = buffer.dtype(), .root = root, .count = buffer.numel()};
  if (!node_ || !one_node()) {
    meet(mine);
    comm::broadcast(world_, mine, bytes_of(buffer), static_cast<std::int64_t>(buffer.bytes()));
    return;
  }
  const bool sends = topology().rank == root;
  for_each_stage(buffer.bytes(), [&](std::size_t begin, std::size_t end) {
    if (sends) stage(bytes_of(buffer) + begin, end - begin);
    meet(mine);
    if (!sends) std::memcpy(bytes_of(buffer) + begin, node_->staging(root), end - begin);
  });
}

void MpiChannel::barrier() { meet({.kind = OperationKind::kBarrier}); }

Storage MpiChannel::allocate(std::size_t bytes) {
  meet({.kind = OperationKind::kAllocate, .count = static_cast<std::int64_t>(bytes)});
  if (node_) {
    if (const std::shared_ptr<SharedWindow> window = runtime_->windows().allocate(bytes)) {
      return {window->parts[static_cast<std::size_t>(topology().local_rank)], bytes, kCpu,
              [window, runtime = runtime_] { window->released = true; }};
    }
    runtime_->warn_of_shortage();
  }
  Storage storage = Storage::allocate(bytes, kCpu);
  std::memset(storage.data(), 0, bytes);
  return storage;
}

std::shared_ptr<MpiChannel> MpiChannel::duplicate(const std::string& name) {
  meet({.kind = OperationKind::kDuplicate});
  return std::make_shared<MpiChannel>(runtime_, name, runtime_->duplicate(topology().world));
}

}  // namespace lockstep::comm
