// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "comm/group/join.h"

namespace lockstep::comm {

namespace {

/// Calls f(begin, bytes) for consecutive pieces of `bytes`; once for none, because ranks must still meet.
template <class F>
void for_each_piece(std::int64_t bytes, std::int64_t most, F f) {
  std::int64_t begin = 0;
  do {
    const std::int64_t piece = std::min(most, bytes - begin);
    f(begin, piece);
    begin += piece;
  } while (begin < bytes);
}

Group world_of(const TcpMembership& membership) {
  Group world{.name = kFirstChannel, .rank = membership.rank()};
  world.ranks.resize(static_cast<std::size_t>(membership.size()));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  return world;
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
Payload TcpTransport::in_order(Call call) {
  // The way to the hub and back included.
  const WaitClock::Wait wait(peers().waits());
  try {
    return call();
  } catch (const PeerError&) {
    peers().fail();
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

void TcpTransport::all_reduce(const Operation& mine, std::span<const Operation>, std::byte* data, std::int64_t count) {
  const std::int64_t length = count * static_cast<std::int64_t>(size_of(mine.dtype));
  for_each_piece(length, kPieceBytes, [&](std::int64_t begin, std::int64_t bytes) {
    const Payload result = exchange(mine, data + begin, bytes, bytes);
    std::memcpy(data + begin, result->data(), result->size());
  });
}

void TcpTransport::broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) {
  for_each_piece(bytes, kPieceBytes, [&](std::int64_t begin, std::int64_t piece) {
    const Payload result = exchange(mine, data + begin, rank() == mine.root ? piece : 0, piece);
    std::memcpy(data + begin, result->data(), result->size());
  });
}

void TcpTransport::all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) {
  // The hub concatenates for these kinds; the ranks compare what the gathering is for.
  const std::int64_t most = std::max<std::int64_t>(kPieceBytes / size(), 1);
  for_each_piece(bytes, most, [&](std::int64_t begin, std::int64_t piece) {
    const Payload result = exchange(mine, in + begin, piece, piece * size());
    for (int r = 0; r < size(); ++r) {
      std::memcpy(out + r * bytes + begin, result->data() + r * piece, static_cast<std::size_t>(piece));
    }
  });
}

void TcpTransport::reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) {
  const std::int64_t length = count * static_cast<std::int64_t>(size_of(mine.dtype));
  for (int owner = 0; owner < size(); ++owner) {
    Operation to_owner = mine;
    to_owner.root = owner;
    for_each_piece(length, kPieceBytes, [&](std::int64_t begin, std::int64_t bytes) {
      const Payload result = exchange(to_owner, in + owner * length + begin, bytes, rank() == owner ? bytes : 0);
      if (rank() == owner) std::memcpy(out + begin, result->data(), result->size());
    });
  }
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
  in_order([&] {
    membership_->link().inspect(id_, mine, number, what, waited);
    return Payload();
  });
}

Joined join_tcp(const LaunchEnvironment& environment, const CommunicatorOptions& options) {
  const auto membership = std::make_shared<TcpMembership>(environment, options);
  return {membership, std::make_shared<TcpTransport>(membership)};
}

}  // namespace lockstep::comm
