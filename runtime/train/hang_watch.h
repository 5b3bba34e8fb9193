// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/train/last_events.h"

namespace lockstep::train {

/// Finds, from a thread of its own, that training stands still. A wait is a hang once it has lasted for the limit; a
/// computation once it has lasted several times as long as any before, too, and never in the first step.
class HangWatch {
 public:
  /// `on_hang`: called by the watch's thread, once for each hang. `events` must outlive this.
  HangWatch(const LastEvents& events, std::chrono::milliseconds limit, std::function<void()> on_hang);

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;
};

}  // namespace lockstep::train
