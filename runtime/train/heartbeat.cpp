// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/heartbeat.h"

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace lockstep::train {

namespace {

constexpr std::chrono::milliseconds kInterval{200};

}  // namespace

Heartbeat::Heartbeat(const StatusBoard& board, int rank) {
  if (board.ranks() == 0) return;
  // Signals are for the threads that listen to them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::jthread([this, board, rank](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      board.beat(rank);
      never_.wait_for(lock, stop, kInterval, [] { return false; });
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lockstep::train
