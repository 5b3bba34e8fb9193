// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/heartbeat.h"

#include <chrono>

#include "runtime/base/blocked_signals.h"

namespace lockstep::train {

namespace {

constexpr std::chrono::milliseconds kBeat{200};

}  // namespace

Heartbeat::Heartbeat(const StatusBoard& board, int rank) {
  if (board.ranks() == 0) return;
  const BlockedSignals for_the_thread;
  thread_ = std::jthread([this, board, rank](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      board.beat(rank);
      never_.wait_for(lock, stop, kBeat, [] { return false; });
    }
  });
}

}  // namespace lockstep::train
