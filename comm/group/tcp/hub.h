// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/meetings.h"

namespace lockstep::comm {

/// Through which ranks without MPI talk: a thread in rank 0's process with a connection to every rank, rank 0 included.
/// It never waits for any of them. A connection that ends is a rank that is gone.
class TcpHub {
 public:
  /// `own`: the end of rank 0's connection. `expected` says which run, and how many ranks, may connect to `listener`;
  /// others are refused, with the reason.
  TcpHub(Socket listener, Socket own, const Hello& expected, std::chrono::milliseconds timeout);
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
    Hello hello{};
    std::size_t hello_bytes = 0;  ///< that have come
    int rank = -1;                ///< once it is welcome
    bool spoke = false;           ///< a frame has come: the rank has joined
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
  void greet(Connection& connection);
  /// Why it may not join; a welcome if it may.
  Welcome judge(const Hello& hello) const;
  void take(Connection& connection, const Frame& frame);
  void write(Connection& connection);
  void drop_closed();
  void send(int rank, const FrameHeader& header, Payload payload);
  Connection* connection_of(int rank);
  bool all_sent() const;
  void abort_all(int origin, std::int64_t exit_code);
  void finish_abort();

  struct Abort {
    int origin;
    std::int64_t exit_code;
    Clock::time_point end;  ///< for the others to be told
  };

  Socket listener_;
  Hello expected_;
  TcpMeetings meetings_;
  std::list<Connection> connections_;
  std::optional<Abort> abort_;
  std::pair<Socket, Socket> wake_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// "rank 1 (process 4711)", with the host where it is not that of `here`.
std::string rank_name(const Hello& of, const Hello& here);

}  // namespace lockstep::comm
