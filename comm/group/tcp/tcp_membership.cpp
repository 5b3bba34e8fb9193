// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/tcp_membership.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "runtime/base/host_name.h"

namespace lockstep::comm {

namespace {

Hello hello_of(const LaunchEnvironment& environment, const TcpRendezvous& where, const CommunicatorOptions& options) {
  Hello hello;
  hello.rank = environment.rank;
  hello.size = environment.size;
  hello.process = getpid();
  hello.job = ShortText::of(options.job);
  // In a named run, ranks whose settings differ still meet: a later check then tells them the difference.
  if (!where.named) hello.job_hash = ShortText::of(options.job_hash);
  hello.host = ShortText::of(host_name());
  return hello;
}

/// Rank 0 takes connections from then on, by `listener`.
TcpRendezvous rendezvous_of(const LaunchEnvironment& environment, LaunchBoard* board, Socket& listener) {
  constexpr const char* kAddress = "address";
  if (board != nullptr && environment.rank != 0) {
    return TcpRendezvous::from_word(environment, board->word_of_rank_0(kAddress, ""));
  }
  TcpRendezvous where =
      board == nullptr ? TcpRendezvous::from_environment(environment) : TcpRendezvous::on_this_host(environment);
  if (environment.rank == 0) listener = where.listen();
  if (board != nullptr) board->word_of_rank_0(kAddress, where.word(listener.port()));
  return where;
}

}  // namespace

TcpMembership::TcpMembership(const LaunchEnvironment& environment, const CommunicatorOptions& options,
                             LaunchBoard* board)
    : where_(rendezvous_of(environment, board, listener_)),
      hello_(hello_of(environment, where_, options)),
      rank_(environment.rank),
      size_(environment.size),
      timeout_(options.timeout),
      peers_(rank_, [this] { link_->fail(); }) {
  Socket socket;
  std::string hub = "rank 0";
  if (rank_ == 0) {
    std::pair<Socket, Socket> ends = connected_pair();
    hub_ = std::make_unique<TcpHub>(std::move(listener_), std::move(ends.first), hello_, where_.key, options.timeout);
    socket = std::move(ends.second);
  } else {
    TcpRendezvous::Joined joined = where_.join(hello_, options.timeout);
    hub = rank_name(joined.welcome.hub, hello_);
    socket = std::move(joined.socket);
  }
  link_ = std::make_unique<TcpLink>(std::move(socket), rank_, hub, options.timeout);
  meet(OperationKind::kJoin);
}

TcpMembership::~TcpMembership() {
  if (peers_.failed() || link_->failed()) return;
  peers_.leave();
  try {
    meet(OperationKind::kLeave);
  } catch (const Error& error) {
    spdlog::warn("rank {} ends without the others: {}", rank_, error.what());
  }
}

void TcpMembership::meet(OperationKind kind) {
  const Operation operation{.kind = kind};
  link_->exchange(0, operation, nullptr, 0, describe(operation, kFirstChannel));
}

}  // namespace lockstep::comm
