// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>

namespace lockstep::comm {

/// How long a process has waited for other ranks: the time in which at least one of its threads did. Thread-safe.
class WaitClock {
 public:
  /// While it lives, the calling thread waits.
  class Wait {
   public:
    explicit Wait(WaitClock& clock) : clock_(clock) { clock_.begin(); }
    ~Wait() { clock_.end(); }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitClock& clock_;
  };

  /// With the waits that have not ended yet.
  std::chrono::nanoseconds total() const {
    const std::lock_guard lock(mutex_);
    return waiting_ == 0 ? total_ : total_ + (Clock::now() - since_);
  }

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

  mutable std::mutex mutex_;
  int waiting_ = 0;  ///< threads
  Clock::time_point since_;
  std::chrono::nanoseconds total_{0};
};

}  // namespace lockstep::comm
