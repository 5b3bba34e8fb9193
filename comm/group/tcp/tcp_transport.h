// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/tcp/direct_exchange.h"
#include "comm/group/tcp/tcp_membership.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

/// The collectives of a channel between ranks without MPI. What is small goes through the hub: every rank sends its
/// part and gets the result back, in one message each. What is large goes over direct connections (direct_mesh.h), once
/// the ranks have met at the hub. Both give the same bits.
class TcpTransport final : public Transport {
 public:
  /// The hub carries up to so many bytes, of all ranks together: it takes one way there and back, where direct
  /// connections take a meeting and two ways more.
  static constexpr std::int64_t kHubBytes = std::int64_t{64} << 10;

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
  /// Whether the hub carries `bytes` of each rank.
  bool is_for_hub(std::int64_t bytes) const { return bytes * size() <= kHubBytes; }
  /// Runs a collective over the direct connections, which the first one makes.
  void exchange_directly(const Operation& mine, const DirectFlow& flow);
  /// A flow of shares that are the parts of `count` elements.
  DirectFlow parts_of(DType dtype, std::int64_t count, const std::byte* in, std::byte* out) const;
  void connect();
  /// Runs `call`, which talks to the hub; what it throws is the end of this rank's order of calls.
  template <class Call>
  auto in_order(Call call);
  /// Runs `call`, which talks to other ranks directly; what it throws is told to all. They lose this rank by it, and
  /// are to name the rank that is the reason.
  template <class Call>
  auto telling(Call call);
  /// Arrives with `bytes` of data; the result, which has to have `expected` bytes.
  Payload exchange(const Operation& operation, const void* data, std::int64_t bytes, std::int64_t expected);
  void require_size(const Payload& result, std::int64_t expected, const std::string& what) const;

  std::shared_ptr<TcpMembership> membership_;
  std::int32_t id_;
  std::vector<Operation> operations_;
  std::optional<DirectExchange> direct_;
};

}  // namespace lockstep::comm
