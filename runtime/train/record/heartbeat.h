// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/train/record/status_board.h"

namespace lockstep::train {

/// Shows on the status board that this process runs, from a thread of its own: a stopped process has no heartbeat, one
/// that computes or waits has.
class Heartbeat {
 public:
  Heartbeat(const StatusBoard& board, int rank);

 private:
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;
};

}  // namespace lockstep::train
