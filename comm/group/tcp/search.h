// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

/// Connects to every place at which rank 0, or another one, may listen, all at once: whoever takes connections there
/// and says nothing costs the others no time, and learns nothing but that somebody has called.
class HubSearch {
 public:
  using Clock = Socket::Clock;
  using Place = std::pair<std::string, std::uint16_t>;  ///< address and port

  struct Found {
    Socket socket;
    Welcome welcome;
  };

  /// `whom`: the rank that is looked for, for messages. `head_start`: of each place before the next one.
  HubSearch(std::vector<Place> places, const Hello& hello, const RunKey& key, std::string whom = "rank 0",
            std::chrono::milliseconds head_start = {});

  /// An answer of a hub; a welcome only of one that has the run's key. None until `end`.
  std::optional<Found> next(Clock::time_point end);
  /// Why there is none yet; may be empty.
  const std::string& reason() const { return strangers_.empty() ? reason_ : strangers_; }

 private:
  struct Attempt {
    std::size_t place;
    Socket socket;
    Clock::time_point end;
    bool connected = false;
    Greeting greeting{};
    Hello hello{};
    Welcome welcome{};
    std::size_t greeted = 0;  ///< bytes of each that have come or gone
    std::size_t sent = 0;
    std::size_t received = 0;
  };
  enum class State { kWaits, kOver, kAnswered };

  void begin();
  void wait(Clock::time_point end) const;
  State go_on(Attempt& attempt);
  /// Looks whether it is connected by now; it is over, for a reason, where it cannot be.
  State connect(Attempt& attempt);
  /// Hears the greeting, says who this is and hears the answer, as far as it goes without waiting.
  State talk(Attempt& attempt) const;
  Hello introduction(const Attempt& attempt) const;

  std::vector<Place> places_;
  std::vector<Clock::time_point> next_try_;  ///< at each place
  Hello hello_;
  RunKey key_;
  std::list<Attempt> attempts_;
  std::string whom_;
  std::string strangers_;  ///< what listens there and is no hub
  std::string reason_;     ///< why nothing does
};

}  // namespace lockstep::comm
