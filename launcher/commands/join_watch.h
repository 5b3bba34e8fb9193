// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"

namespace lockstep::launcher {

/// Finds, from a thread of its own, that this rank has not joined the others in time. Ranks that wait for each other
/// give up by themselves; a call inside MPI's start may not return at all. Ends when the rank has joined.
class JoinWatch {
 public:
  /// Is told once; should end the process.
  using OnLate = std::function<void(const Error&)>;

  JoinWatch(std::chrono::milliseconds limit, OnLate on_late);

  /// The limit for ranks whose waits for each other have this timeout: twice as long, and half a minute at least, as a
  /// busy machine takes seconds to start many ranks.
  static std::chrono::milliseconds limit_for(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;
};

}  // namespace lockstep::launcher
