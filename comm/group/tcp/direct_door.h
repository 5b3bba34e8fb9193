// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <optional>
#include <vector>

#include "comm/group/tcp/introduction.h"

namespace lockstep::comm {

/// Takes the direct connections of other ranks of a channel, and sends strangers away.
class DirectDoor {
 public:
  using Clock = Socket::Clock;
  struct Guest {
    int place;  ///< of the rank in `cards`
    int lane;
    Socket socket;
  };

  /// `own`: this rank's card, with the channel. `cards`: who the ranks of the channel are, as the hub has passed it on.
  /// A rank may connect once for each of `lanes`.
  DirectDoor(Socket listener, const Hello& own, std::vector<Hello> cards, int lanes, const RunKey& key);

  /// The next rank that has proved who it is; none until `end`.
  std::optional<Guest> next(Clock::time_point end);

 private:
  struct Caller {
    Socket socket;
    Clock::time_point accepted;
    Introduction introduction;
    int place = -1;  ///< once it is welcome
    bool gone = false;
  };

  void wait(Clock::time_point end) const;
  void accept_all();
  /// Whether the caller has said that it takes the connection.
  bool has_come(Caller& caller);
  Welcome judge(Caller& caller) const;

  Socket listener_;
  Hello own_;
  std::vector<Hello> cards_;
  int lanes_;
  RunKey key_;
  std::list<Caller> callers_;
};

/// The byte with which a rank takes a connection after the welcome. One that has given up before does not count.
inline constexpr char kTaken = 't';

}  // namespace lockstep::comm
