// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// Greets every place at which rank 0 may listen, all at once: whoever takes connections there and says nothing costs
/// the others no time.
class HubSearch {
 public:
  using Clock = Socket::Clock;
  using Place = std::pair<std::string, std::uint16_t>;  ///< address and port

  struct Found {
    Socket socket;
    Welcome welcome;
  };

  HubSearch(std::vector<Place> places, const Hello& hello);

  /// An answer of a hub; none until `end`.
  std::optional<Found> next(Clock::time_point end);
  /// Why there is none yet; may be empty.
  const std::string& reason() const { return strangers_.empty() ? reason_ : strangers_; }

 private:
  struct Attempt {
    std::size_t place;
    Socket socket;
    Clock::time_point end;
    bool connected = false;
    std::size_t sent = 0;
    std::size_t received = 0;
    Welcome welcome{};
  };
  enum class State { kWaits, kOver, kAnswered };

  void begin();
  void wait(Clock::time_point end) const;
  State go_on(Attempt& attempt);

  std::vector<Place> places_;
  std::vector<Clock::time_point> next_try_;  ///< at each place
  Hello hello_;
  std::list<Attempt> attempts_;
  std::string strangers_;  ///< what listens there and is no hub
  std::string reason_;     ///< why nothing does
};

}  // namespace lockstep::comm
