// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/tcp/tcp_membership.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// The collectives of a channel between ranks without MPI. Every rank sends its part to the hub and gets the result
/// back, in pieces of up to kPieceBytes: rank 0's machine carries the traffic of all, which is enough for what the
/// hosts of GPUs say to each other, and for ranks whose node reduces in shared memory first.
class TcpTransport final : public Transport {
 public:
  static constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

  /// The first channel.
  explicit TcpTransport(std::shared_ptr<TcpMembership> membership);
  /// Another one, which the hub knows by `id`.
  TcpTransport(std::shared_ptr<TcpMembership> membership, std::int32_t id, Group group);

  std::string description() const override { return "tcp"; }
  const std::vector<Operation>& meet(const Operation& mine) override;
  void all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data, std::int64_t count) override;
  void reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) override;
  void all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) override;
  void broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) override;
  std::shared_ptr<Transport> split(int color, int key, const std::string& name) override;
  void inspect(const Operation& mine, std::int64_t number, std::chrono::milliseconds waited) override;

 private:
  /// Runs `call`, which talks to the hub; what it throws is the end of this rank's order of calls.
  template <class Call>
  Payload in_order(Call call);
  /// Arrives with `bytes` of data; the result, which has to have `expected` bytes.
  Payload exchange(const Operation& operation, const void* data, std::int64_t bytes, std::int64_t expected);
  void require_size(const Payload& result, std::int64_t expected, const std::string& what) const;

  std::shared_ptr<TcpMembership> membership_;
  std::int32_t id_;
  std::vector<Operation> operations_;
};

}  // namespace lockstep::comm
