// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "comm/group/communicator.h"
#include "comm/group/join.h"
#include "comm/group/launch_board.h"
#include "comm/group/launch_environment.h"
#include "comm/group/liveness/peers.h"
#include "comm/group/tcp/hub.h"
#include "comm/group/tcp/link.h"
#include "comm/group/tcp/rendezvous.h"

namespace lockstep::comm {

/// One of several ranks that a launcher has started without MPI: its link to the hub and, on rank 0, the hub. Ends with
/// all ranks; after an error it does not wait for them.
class TcpMembership final : public Membership {
 public:
  /// Waits for all ranks, which find rank 0 by `board` or, where it is null, by the environment. Throws PeerError that
  /// names those that do not come, UsageError for a missing or wrong variable of the environment, EnvironmentError
  /// where rank 0 cannot listen or refuses.
  TcpMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options, LaunchBoard* board = nullptr);
  ~TcpMembership() override;
  TcpMembership(const TcpMembership&) = delete;
  TcpMembership& operator=(const TcpMembership&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// How this rank introduces itself, and where and with which key ranks find each other.
  const Hello& hello() const { return hello_; }
  const TcpRendezvous& rendezvous() const { return where_; }
  TcpLink& link() { return *link_; }
  Peers& peers() { return peers_; }

  void fail() override { peers_.fail(); }
  void abort(int exit_code) override { link_->abort(exit_code); }

 private:
  /// Meets all ranks in the first channel: to join, and to leave.
  void meet(OperationKind kind);

  Socket listener_;  // rank 0's, until the hub has it
  TcpRendezvous where_;
  Hello hello_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<TcpHub> hub_;
  std::unique_ptr<TcpLink> link_;  // ends before the hub
  Peers peers_;                    // tells the hub, through the link
};

}  // namespace lockstep::comm
