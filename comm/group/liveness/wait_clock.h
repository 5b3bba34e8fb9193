// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>

namespace lockstep::comm {

/// How long the process and each of its threads have waited for other ranks. A process has one clock. Thread-safe.
class WaitClock {
 public:
  /// While it lives, the calling thread waits for other threads of this process: its wait counts as one for other ranks
  /// as long as any thread of the process waits for them.
  class Join {
   public:
    explicit Join(const WaitClock& clock) : clock_(clock), mine_(of_this_thread_), total_(clock.total()) {}
    ~Join() { of_this_thread_ = mine_ + (clock_.total() - total_); }
    Join(const Join&) = delete;
    Join& operator=(const Join&) = delete;

   private:
    const WaitClock& clock_;
    std::chrono::nanoseconds mine_;  ///< both before
    std::chrono::nanoseconds total_;
  };

  /// While it lives, the calling thread waits for other ranks.
  class Wait {
   public:
    explicit Wait(WaitClock& clock) : mine_(clock), clock_(clock) { clock_.begin(); }
    ~Wait() { clock_.end(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Join mine_;  ///< ends behind the wait
    WaitClock& clock_;
  };

  /// The time in which at least one thread waited, with the waits that have not ended yet.
  std::chrono::nanoseconds total() const {
    const std::lock_guard lock(mutex_);
    return waiting_ == 0 ? total_ : total_ + (Clock::now() - since_);
  }
  /// The time in which the calling thread waited, without a wait that has not ended yet.
  static std::chrono::nanoseconds of_this_thread() { return of_this_thread_; }

 private:
  using Clock = std::chrono::steady_clock;

  void begin() {
    const std::lock_guard lock(mutex_);
    if (waiting_++ == 0) since_ = Clock::now();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--waiting_ == 0) total_ += Clock::now() - since_;
  }

  static inline thread_local std::chrono::nanoseconds of_this_thread_{0};

  mutable std::mutex mutex_;
  int waiting_ = 0;  ///< threads
  Clock::time_point since_;
  std::chrono::nanoseconds total_{0};
};

}  // namespace lockstep::comm
