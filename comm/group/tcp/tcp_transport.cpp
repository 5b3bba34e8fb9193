// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/tcp_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::comm {

namespace {

std::byte* bytes_of(const Tensor& tensor) { return static_cast<std::byte*>(tensor.data()); }
std::int64_t length_of(const Tensor& tensor) { return static_cast<std::int64_t>(tensor.bytes()); }

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

}  // namespace

TcpTransport::TcpTransport(std::shared_ptr<TcpMembership> runtime, std::int32_t id, std::string name)
    : runtime_(std::move(runtime)), id_(id), name_(std::move(name)) {}

Payload TcpTransport::exchange(const Operation& operation, const void* data, std::int64_t bytes,
                               std::int64_t expected) {
  const std::string what = describe(operation, name_);
  Payload result = runtime_->link().exchange(id_, operation, data, static_cast<std::size_t>(bytes), what);
  if (static_cast<std::int64_t>(result->size()) == expected) return result;
  throw PeerError(
      what + ": expected " + std::to_string(expected) + " bytes from rank 0, found " + std::to_string(result->size()),
      "Start every rank with the same program.");
}

Storage TcpTransport::allocate(std::size_t bytes) {
  exchange({.kind = OperationKind::kAllocate, .count = static_cast<std::int64_t>(bytes)}, nullptr, 0, 0);
  Storage storage = Storage::allocate(bytes, kCpu);
  std::memset(storage.data(), 0, bytes);
  return storage;
}

void TcpTransport::all_reduce(const Tensor& buffer, ReduceOp op, float premultiply) {
  const Operation mine{.kind = OperationKind::kAllReduce,
                       .reduce = op,
                       .dtype = buffer.dtype(),
                       .count = buffer.numel(),
                       .premultiply = premultiply};
  for_each_piece(length_of(buffer), kPieceBytes, [&](std::int64_t begin, std::int64_t bytes) {
    std::byte* const piece = bytes_of(buffer) + begin;
    const Payload result = exchange(mine, piece, bytes, bytes);
    std::memcpy(piece, result->data(), result->size());
  });
}

void TcpTransport::broadcast(const Tensor& buffer, int root) {
  const Operation mine{
      .kind = OperationKind::kBroadcast, .dtype = buffer.dtype(), .root = root, .count = buffer.numel()};
  for_each_piece(length_of(buffer), kPieceBytes, [&](std::int64_t begin, std::int64_t bytes) {
    std::byte* const piece = bytes_of(buffer) + begin;
    const Payload result = exchange(mine, piece, rank() == root ? bytes : 0, bytes);
    std::memcpy(piece, result->data(), result->size());
  });
}

void TcpTransport::all_gather(const Tensor& in, const Tensor& out) {
  const Operation mine{.kind = OperationKind::kAllGather, .dtype = in.dtype(), .count = in.numel()};
  const std::int64_t most = std::max<std::int64_t>(kPieceBytes / size(), 1);
  for_each_piece(length_of(in), most, [&](std::int64_t begin, std::int64_t bytes) {
    const Payload result = exchange(mine, bytes_of(in) + begin, bytes, bytes * size());
    for (int r = 0; r < size(); ++r) {
      std::memcpy(bytes_of(out) + r * length_of(in) + begin, result->data() + r * bytes,
                  static_cast<std::size_t>(bytes));
    }
  });
}

void TcpTransport::reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op) {
  for (int owner = 0; owner < size(); ++owner) {
    const Operation mine{
        .kind = OperationKind::kReduceScatter, .reduce = op, .dtype = in.dtype(), .root = owner, .count = in.numel()};
    for_each_piece(length_of(out), kPieceBytes, [&](std::int64_t begin, std::int64_t bytes) {
      const std::byte* const part = bytes_of(in) + owner * length_of(out) + begin;
      const Payload result = exchange(mine, part, bytes, rank() == owner ? bytes : 0);
      if (rank() == owner) std::memcpy(bytes_of(out) + begin, result->data(), result->size());
    });
  }
}

void TcpTransport::barrier() { exchange({.kind = OperationKind::kBarrier}, nullptr, 0, 0); }

void TcpTransport::inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) {
  runtime_->link().inspect(id_, mine, number, describe(mine, name_) + ", number " + std::to_string(number), waited);
}

std::shared_ptr<TcpTransport> TcpTransport::duplicate(const std::string& name) {
  std::int32_t id = 0;
  const Payload result = exchange({.kind = OperationKind::kDuplicate}, name.data(),
                                  static_cast<std::int64_t>(name.size()), static_cast<std::int64_t>(sizeof id));
  std::memcpy(&id, result->data(), sizeof id);
  return std::make_shared<TcpTransport>(runtime_, id, name);
}

}  // namespace lockstep::comm
