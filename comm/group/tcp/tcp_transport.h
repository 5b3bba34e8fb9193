// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/group/communicator.h"
#include "comm/group/operation.h"
#include "comm/group/tcp/tcp_membership.h"

namespace lockstep::comm {

/// The collectives of one channel between ranks without MPI, for one thread at a time; each has finished when it
/// returns. Every rank sends its part to the hub and gets the result back, in pieces of up to kPieceBytes: rank 0's
/// machine carries the traffic of all, which is enough for what the hosts of GPUs say to each other.
class TcpTransport {
 public:
  static constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

  /// The first channel.
  explicit TcpTransport(std::shared_ptr<TcpMembership> runtime) : TcpTransport(std::move(runtime), 0, kFirstChannel) {}
  /// Another one, which the hub knows by `id`.
  TcpTransport(std::shared_ptr<TcpMembership> runtime, std::int32_t id, std::string name);

  int rank() const { return runtime_->rank(); }
  int size() const { return runtime_->size(); }
  std::string description() const { return "tcp"; }

  // As in Communicator.
  Storage allocate(std::size_t bytes);
  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply);
  void broadcast(const Tensor& buffer, int root);
  void all_gather(const Tensor& in, const Tensor& out);
  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op);
  void barrier();
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited);
  std::chrono::nanoseconds waited() const { return runtime_->link().waits().total(); }
  std::shared_ptr<TcpTransport> duplicate(const std::string& name);

 private:
  /// Arrives with `bytes` of data; the result, which has to have `expected` bytes.
  Payload exchange(const Operation& operation, const void* data, std::int64_t bytes, std::int64_t expected);

  std::shared_ptr<TcpMembership> runtime_;
  std::int32_t id_;
  std::string name_;
};

}  // namespace lockstep::comm
