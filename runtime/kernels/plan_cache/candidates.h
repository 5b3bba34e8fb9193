// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace lockstep::kernels {

/// Ways to do one piece of work, the best first. One that fails is passed by from then on. Thread-safe.
class Candidates {
 public:
  explicit Candidates(std::size_t count) : count_(count) {}

  /// Calls `attempt` with the number of one after the other until one returns true. False where none is left. What an
  /// attempt throws comes out, and that one is tried again next time.
  template <class Attempt>
  bool run(Attempt&& attempt) {
    for (std::size_t i = first_; i < count_; ++i) {
      if (attempt(i)) return true;
      // All before it have failed too, whoever tried them.
      std::size_t known = first_;
      while (known < i + 1 && !first_.compare_exchange_weak(known, i + 1)) {
      }
    }
    return false;
  }

 private:
  std::size_t count_;
  std::atomic<std::size_t> first_ = 0;  ///< the first way that has not failed
};

}  // namespace lockstep::kernels
