// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "comm/group/join.h"
#include "comm/group/reduction.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

Group world_of(const TcpMembership& membership) {
  Group world{.name = kFirstChannel, .rank = membership.rank()};
  world.ranks.resize(static_cast<std::size_t>(membership.size()));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  return world;
}

/// A flow of a slice of `bytes` for each rank. Nobody contributes and nobody receives yet.
DirectFlow slices_of(int ranks, std::int64_t bytes) {
  const std::vector<bool> none(static_cast<std::size_t>(ranks), false);
  DirectFlow flow{.contributes = none, .receives = none, .piece_bytes = DirectFlow::piece_for(bytes)};
  for (int r = 0; r < ranks; ++r) flow.shares.push_back({r * bytes, bytes});
  return flow;
}

/// Reduces `bytes` of one source a rank.
void reduce_piece(const Reduction& reduction, std::span<const std::byte* const> sources, std::byte* out,
                  std::int64_t bytes) {
  const std::vector<const void*> from(sources.begin(), sources.end());
  void* const to = out;
  reduce(reduction, from, {&to, 1}, bytes / static_cast<std::int64_t>(size_of(reduction.dtype)));
}

}  // namespace

TcpTransport::TcpTransport(std::shared_ptr<TcpMembership> membership)
    : TcpTransport(membership, 0, world_of(*membership)) {}

TcpTransport::TcpTransport(std::shared_ptr<TcpMembership> membership, std::int32_t id, Group group)
    : Transport(std::move(group), membership->peers(), membership->timeout()),
      membership_(std::move(membership)),
      id_(id),
      operations_(this->group().ranks.size()) {}

template <class Call>
auto TcpTransport::in_order(Call call) {
  // The way to the hub and back included.
  const WaitClock::Wait wait(peers().waits());
  const TraceRange range("wait for other ranks", RangeKind::kCommunication);
  try {
    return call();
  } catch (const Error&) {
    peers().fail();
    throw;
  }
}

template <class Call>
auto TcpTransport::telling(Call call) {
  try {
    return call();
  } catch (const PeerError& error) {
    membership_->link().fail(error);
    throw;
  }
}

void TcpTransport::require_size(const Payload& result, std::int64_t expected, const std::string& what) const {
  if (static_cast<std::int64_t>(result->size()) == expected) return;
  throw PeerError(fmt::format("{}: expected {} bytes from rank 0, found {}", what, expected, result->size()),
                  "Start every rank with the same program.");
}

Payload TcpTransport::exchange(const Operation& operation, const void* data, std::int64_t bytes,
                               std::int64_t expected) {
  const std::string what = describe(operation, group().name);
  peers().require_working(what);
  return in_order([&] {
    Payload result = membership_->link().exchange(id_, operation, data, static_cast<std::size_t>(bytes), what);
    require_size(result, expected, what);
    return result;
  });
}

const std::vector<Operation>& TcpTransport::meet(const Operation& mine) {
  const std::string what = describe(mine, group().name);
  peers().require_working(what);
  const Payload result = in_order([&] {
    Payload met = membership_->link().meet(id_, mine, what);
    require_size(met, static_cast<std::int64_t>(operations_.size() * sizeof(Operation)), what);
    return met;
  });
  std::memcpy(operations_.data(), result->data(), result->size());
  return operations_;
}

void TcpTransport::connect() {
  const Operation operation{.kind = OperationKind::kConnect};
  const std::string what = describe(operation, group().name);
  Socket listener = in_order([&] { return membership_->rendezvous().listen_to_ranks(membership_->rank()); });
  const DirectCard own = in_order([&] { return direct_card(*membership_, listener, id_); });
  std::vector<DirectCard> cards(operations_.size());
  const Payload told = exchange(operation, &own, sizeof own, static_cast<std::int64_t>(cards.size() * sizeof own));
  std::memcpy(cards.data(), told->data(), told->size());
  DirectMesh mesh = in_order([&] {
    return telling([&] {
      return connect_ranks(*membership_, std::move(listener), group(), cards, membership_->rendezvous().key, what);
    });
  });
  direct_.emplace(std::move(mesh), membership_->link(), timeout());
}

void TcpTransport::exchange_directly(const Operation& mine, const DirectFlow& flow) {
  if (!direct_) connect();
  in_order([&] { telling([&] { direct_->run(flow, describe(mine, group().name)); }); });
}

DirectFlow TcpTransport::parts_of(DType dtype, std::int64_t count, const std::byte* in, std::byte* out) const {
  const std::vector<bool> all(operations_.size(), true);
  DirectFlow flow{.in = in, .out = out, .contributes = all, .receives = all};
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t longest = 0;
  for (int r = 0; r < size(); ++r) {
    const Range part = part_of(count, r, size(), dtype);
    flow.shares.push_back({part.begin * element, part.count() * element});
    longest = std::max(longest, part.count() * element);
  }
  flow.piece_bytes = DirectFlow::piece_for(longest);
  return flow;
}

void TcpTransport::all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data,
                              std::int64_t count) {
  const auto element = static_cast<std::int64_t>(size_of(mine.dtype));
  if (is_for_hub(count * element)) {
    const Payload result = exchange(mine, data, count * element, count * element);
    std::memcpy(data, result->data(), result->size());
    return;
  }
  const Reduction reduction = reduction_of(mine, met.empty() ? meet(mine) : met);
  DirectFlow flow = parts_of(mine.dtype, count, data, data);
  std::byte* const own = data + flow.shares[static_cast<std::size_t>(rank())].begin;
  flow.combine = [&](std::span<const std::byte* const> sources, std::int64_t offset, std::int64_t bytes) {
    reduce_piece(reduction, sources, own + offset, bytes);
  };
  exchange_directly(mine, flow);
}

void TcpTransport::reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) {
  const std::int64_t length = count * static_cast<std::int64_t>(size_of(mine.dtype));
  if (is_for_hub(length * size())) {
    for (int owner = 0; owner < size(); ++owner) {
      Operation to_owner = mine;
      to_owner.root = owner;
      const Payload result = exchange(to_owner, in + owner * length, length, rank() == owner ? length : 0);
      if (rank() == owner) std::memcpy(out, result->data(), result->size());
    }
    return;
  }
  const Reduction reduction = reduction_of(mine, meet(mine));
  DirectFlow flow = slices_of(size(), length);
  flow.in = in;
  flow.contributes.assign(operations_.size(), true);
  flow.combine = [&](std::span<const std::byte* const> sources, std::int64_t offset, std::int64_t bytes) {
    reduce_piece(reduction, sources, out + offset, bytes);
  };
  exchange_directly(mine, flow);
}

void TcpTransport::all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) {
  if (is_for_hub(bytes)) {
    // The hub concatenates for these kinds; the ranks compare what the gathering is for.
    const Payload result = exchange(mine, in, bytes, bytes * size());
    std::memcpy(out, result->data(), result->size());
    return;
  }
  meet(mine);
  std::byte* const own = out + rank() * bytes;
  if (in != own) std::memcpy(own, in, static_cast<std::size_t>(bytes));
  DirectFlow flow = slices_of(size(), bytes);
  flow.out = out;
  flow.receives.assign(operations_.size(), true);
  exchange_directly(mine, flow);
}

void TcpTransport::broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) {
  if (is_for_hub(bytes)) {
    const Payload result = exchange(mine, data, rank() == mine.root ? bytes : 0, bytes);
    std::memcpy(data, result->data(), result->size());
    return;
  }
  meet(mine);
  const auto root = static_cast<std::size_t>(mine.root);
  // The root gives each rank its share, which that one passes on.
  DirectFlow flow = parts_of(DType::kUInt8, bytes, data, data);
  flow.contributes.assign(operations_.size(), false);
  flow.contributes[root] = true;
  flow.receives[root] = false;
  std::byte* const own = data + flow.shares[static_cast<std::size_t>(rank())].begin;
  flow.combine = [&](std::span<const std::byte* const> sources, std::int64_t offset, std::int64_t length) {
    std::memcpy(own + offset, sources[root], static_cast<std::size_t>(length));
  };
  exchange_directly(mine, flow);
}

std::shared_ptr<Transport> TcpTransport::split(int color, int key, const std::string& name) {
  const SplitRequest request{color, key};
  std::string bytes(reinterpret_cast<const char*>(&request), sizeof request);
  bytes += name;
  const Operation operation{.kind = OperationKind::kNewChannel};
  const std::string what = describe(operation, group().name);
  peers().require_working(what);
  const Payload answer =
      in_order([&] { return membership_->link().exchange(id_, operation, bytes.data(), bytes.size(), what); });
  if (color < 0) return nullptr;
  std::vector<std::int32_t> numbers(answer->size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), answer->data(), numbers.size() * sizeof(std::int32_t));
  Group part{.name = name};
  if (!numbers.empty()) part.ranks.assign(numbers.begin() + 1, numbers.end());
  const auto own = std::ranges::find(part.ranks, group().ranks[static_cast<std::size_t>(rank())]);
  if (own == part.ranks.end()) throw PeerError(what + ": rank 0 has made no channel for this rank");
  part.rank = static_cast<int>(own - part.ranks.begin());
  return std::make_shared<TcpTransport>(membership_, numbers.front(), std::move(part));
}

void TcpTransport::inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) {
  const std::string what = fmt::format("{}, number {}", describe(mine, group().name), number);
  in_order([&] { membership_->link().inspect(id_, mine, number, what, waited); });
}

Joined join_tcp(const LaunchEnvironment& environment, const CommunicatorOptions& options, LaunchBoard* board) {
  const auto membership = std::make_shared<TcpMembership>(environment, options, board);
  return {membership, std::make_shared<TcpTransport>(membership)};
}

}  // namespace lockstep::comm
