// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace lockstep {

/// Whether a thread that waits for microseconds should yield its core. A yield returns at once where nobody else wants
/// the core. Where somebody does it costs their time slice, which is milliseconds, while a thread that sleeps is woken
/// as soon as what it waits for is there. So a yield that came back late ends yielding for a while.
class YieldChoice {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr auto kLate = std::chrono::microseconds(500);
  /// Long beside a time slice, so that trying again costs little.
  static constexpr auto kWhile = std::chrono::milliseconds(50);

  bool yields(Clock::time_point now) const { return now >= again_; }
  void yielded(Clock::time_point before, Clock::time_point after) {
    if (after - before >= kLate) again_ = after + kWhile;
  }

 private:
  Clock::time_point again_ = Clock::time_point::min();
};

/// Yields the calling thread's core, unless others want it (YieldChoice): then false, and the caller sleeps.
bool yield_core();

}  // namespace lockstep
