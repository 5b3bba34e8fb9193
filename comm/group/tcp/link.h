// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "comm/group/liveness/peer_errors.h"
#include "comm/group/tcp/frame.h"
#include "runtime/base/descriptor.h"

namespace lockstep::comm {

/// A rank's connection to the hub, which all of its channels share: a thread hands each channel its answer.
/// Thread-safe; a channel has one call at a time.
class TcpLink {
 public:
  using Clock = std::chrono::steady_clock;

  /// `hub`: the hub's name for messages, "rank 0 (process 4711)".
  TcpLink(Socket socket, int rank, std::string hub, std::chrono::milliseconds timeout);
  ~TcpLink();
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  /// Arrives at `operation` in a channel, with data, and waits for the hub's answer. `what` is the operation's
  /// description. Throws PeerError, and then this rank has lost its order of calls.
  Payload exchange(std::int32_t channel, const Operation& operation, const void* data, std::size_t bytes,
                   const std::string& what);
  /// Exchanges no data: the answer is the operation that each rank is about to do.
  Payload meet(std::int32_t channel, const Operation& operation, const std::string& what);

  /// Transport::inspect for a channel. Beside an exchange().
  void inspect(std::int32_t channel, const Operation& operation, std::int64_t number, const std::string& what,
               std::chrono::milliseconds waited);

  /// A rank that makes no more calls.
  struct LostRank {
    int rank;
    std::string name;
    PeerState state;
    std::optional<PeerError> why;  ///< what it failed with, where another rank is the reason

    /// The error of a rank that waits for it in `what`.
    PeerError error(const std::string& what) const { return why ? *why : absent(what, name, state); }
  };
  /// The rank that was lost first, as the hub says, or rank 0 where the hub is gone; none until `end`.
  std::optional<LostRank> first_lost(Clock::time_point end);
  /// Readable from then on.
  int lost_descriptor() const { return lost_.get(); }

  /// The addresses of this rank and of the hub, as they reach each other; empty on rank 0.
  std::string own_address() const { return socket_.own_address(); }
  std::string hub_address() const { return socket_.peer_address(); }

  bool failed() const { return failed_; }
  /// Tells the others, through the hub, that this rank makes no more calls.
  void fail();
  /// The same after an error that other ranks are the reason of.
  void fail(const PeerError& why);
  /// Has every other process ended; returns once they have been told, or after a second.
  void abort(int exit_code);

 private:
  void fail(const Payload& why);
  LostRank lost_rank() const;
  void serve();
  /// Makes lost_descriptor() readable.
  void tell_lost() const;
  Payload arrive(FrameHeader header, const void* data, const std::string& what);
  void send(const FrameHeader& header, const void* data, std::size_t bytes, Clock::time_point end);
  /// The answer that `answers` gets for `key`; none where the hub is silent until `end`. Throws where it is gone.
  template <class Key>
  std::optional<Frame> await(std::map<Key, Frame>& answers, const Key& key, const std::string& what,
                             Clock::time_point end);
  [[noreturn]] void lose(const PeerError& error);

  Socket socket_;
  int rank_;
  std::string hub_;
  std::chrono::milliseconds timeout_;
  std::atomic<bool> failed_ = false;
  Descriptor lost_;
  std::mutex sending_;  // one frame after the other
  std::mutex mutex_;    // guards what follows
  std::condition_variable changed_;
  std::map<std::int32_t, Frame> results_;                            // by channel
  std::map<std::pair<std::int32_t, std::int64_t>, Frame> verdicts_;  // by channel and number
  std::optional<Frame> news_;
  bool hub_gone_ = false;
  bool aborted_ = false;
  std::thread thread_;
};

}  // namespace lockstep::comm
