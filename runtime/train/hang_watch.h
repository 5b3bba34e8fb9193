// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/train/last_events.h"

namespace lockstep::train {

/// Finds, from a thread of its own, that training stands still: in a computation, a collective, or a wait for data.
class HangWatch {
 public:
  /// `on_hang`: called by the watch's thread once nothing has begun or ended for `limit`, and again where that happens
  /// anew. `events` must outlive this.
  HangWatch(const LastEvents& events, std::chrono::milliseconds limit, std::function<void()> on_hang);

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;
};

}  // namespace lockstep::train
