// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/group/tcp/tcp_membership.h"
#include "comm/group/transport.h"

namespace lockstep::comm {

// Direct connections: how the ranks of a channel carry what is too large for rank 0 to carry for all.
//
// The hub, in rank 0's process, stays the place where ranks meet: it compares their calls, knows who is late or gone,
// and passes on at which address and port each rank listens. Then the ranks of a channel connect to each other, when
// the channel first has something large to carry, and keep the connections. Each is greeted as the hub is
// (greeting.h): both ends prove that they have the run's key, and that they are who the hub says.
//
// A collective (direct_exchange.h) is a reduce-scatter and an all-gather at once. Each rank owns a share of the buffer.
// It receives the others' contributions to its share, piece by piece, sums each piece by one rank_reduce in the order
// of the ranks, and sends the result to the others while further pieces come. So every rank sends and receives
// 2 (N-1) / N of the buffer, in both directions at once, and a sum has the bits of the hub's: they depend neither on
// the size of pieces, nor on the number of connections, nor on who comes first.

/// How many connections two ranks have: LOCKSTEP_TCP_CONNECTIONS, where one does not fill the link; 1 where it is
/// unset. Throws UsageError for what is no number from 1 to 16.
int direct_lanes();

/// The connections of one rank of a channel. Everything by place in the channel.
struct DirectMesh {
  int place = 0;                             ///< this rank's
  std::vector<int> ranks;                    ///< of the job
  std::vector<std::string> names;            ///< "rank 1 (process 4711 on node1)"
  std::vector<std::vector<Socket>> sockets;  ///< the connections to each other rank; as many to each
};

/// A rank sends its card to the others, through the hub, before they connect. Plain bytes.
struct DirectCard {
  Hello hello;             ///< with the channel, and the port at which the rank listens
  ShortText address{};     ///< the chosen interface's, else that by which it reaches the hub; empty on rank 0 then
  std::int64_t lanes = 1;  ///< direct_lanes(): the least of all ranks counts
};

DirectCard direct_card(TcpMembership& membership, const Socket& listener, std::int32_t channel);

/// Connects this rank to every other one: a collective of a channel's ranks, whose `cards` all have. `what` describes
/// it for messages, `key` is the run's. Throws PeerError that names both ends where two ranks do not reach each other
/// within the timeout, or the rank that was lost meanwhile; EnvironmentError where this process may not open so many
/// connections.
DirectMesh connect_ranks(TcpMembership& membership, Socket listener, const Group& group,
                         const std::vector<DirectCard>& cards, const RunKey& key, const std::string& what);

}  // namespace lockstep::comm
