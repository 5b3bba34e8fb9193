// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/introduction.h"
#include "comm/group/tcp/meetings.h"
#include "comm/group/tcp/rank_claims.h"

namespace lockstep::comm {

/// Through which ranks without MPI talk: a thread in rank 0's process with a connection to every rank, rank 0 included.
/// It never waits for any of them. A connection that ends is a rank that is gone.
class TcpHub {
 public:
  /// How long a connection may take to say who it is.
  static constexpr std::chrono::milliseconds kGreeting = std::chrono::seconds(10);

  /// `own`: the end of rank 0's connection. `expected` says what ranks, and how many, may connect to `listener`, and
  /// they prove that they have the run's key; others are refused, with the reason.
  TcpHub(Socket listener, Socket own, const Hello& expected, const RunKey& key, std::chrono::milliseconds timeout,
         std::chrono::milliseconds greeting = kGreeting, RankClaims claims = RankClaims());
  /// Sends what is still to be sent, for up to a second.
  ~TcpHub();
  TcpHub(const TcpHub&) = delete;
  TcpHub& operator=(const TcpHub&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  struct Outgoing {
    FrameHeader header;
    Payload payload;
  };
  struct Connection {
    Socket socket;
    Clock::time_point accepted;
    Introduction introduction;
    int rank = -1;       ///< once it is welcome
    bool spoke = false;  ///< a frame has come: the rank has joined
    FrameReader reader;
    std::deque<Outgoing> outgoing;
    std::size_t sent = 0;  ///< bytes of the first one
    bool closed = false;
  };

  void serve();
  /// Waits until there is something to do.
  void wait();
  void accept_all();
  void read(Connection& connection);
  /// Hears who it is, as far as that has come, and answers.
  void greet(Connection& connection);
  /// Why it may not join; a welcome if it may.
  Welcome judge(const Connection& connection) const;
  /// Looks whether one with another job calls in place of a rank that has not come; tells of it.
  Welcome::Answer judge_other_job(const Hello& caller, const std::string& reason);
  /// The ranks that have not come, and are not known to be lost.
  std::vector<int> missing() const;
  /// Logs a refusal, each reason once: whoever asks can bring one about again and again.
  void warn_of(const Hello& refused, const std::string& reason);
  void take(Connection& connection, const Frame& frame);
  void write(Connection& connection);
  void drop_closed();
  void send(int rank, const FrameHeader& header, Payload payload);
  Connection* connection_of(int rank);
  bool all_sent() const;
  void abort_all(int origin, int exit_code);
  void finish_abort();

  struct Abort {
    int origin;
    int exit_code;
    Clock::time_point end;  ///< for the others to be told
  };

  Socket listener_;
  std::uint16_t port_;  ///< the listener's
  Hello expected_;
  RunKey key_;
  std::chrono::milliseconds greeting_;
  Clock::time_point next_accept_ = Clock::time_point::min();  ///< later than now where the last one failed
  TcpMeetings meetings_;
  std::list<Connection> connections_;
  std::optional<Abort> abort_;
  std::set<std::string> warned_of_;  ///< the reasons
  RankClaims claims_;
  std::pair<Socket, Socket> wake_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace lockstep::comm
