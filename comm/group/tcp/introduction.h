// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// The side of a greeting that takes the connection: of the hub, and of a rank to which others connect directly. Never
/// waits.
class Introduction {
 public:
  enum class State { kWaits, kComplete, kOver };

  /// Greets whoever has connected.
  void greet(const Socket& socket);
  /// Hears who it is, as far as that has come: kComplete once, kOver where the connection is gone or nobody of ours.
  State hear(const Socket& socket);
  const Hello& hello() const { return hello_; }
  bool proves(const RunKey& key) const;
  /// Answers the hello; `own` is who answers.
  void answer(const Socket& socket, Welcome welcome, const Hello& own, const RunKey& key) const;

 private:
  Greeting greeting_{};
  Hello hello_{};
  std::size_t heard_ = 0;  ///< bytes of the hello
};

}  // namespace lockstep::comm
