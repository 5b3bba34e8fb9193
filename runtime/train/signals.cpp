// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

namespace lockstep::train {

namespace {

constexpr std::array kSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> previous;

void request_stop(int) { stop_requested.store(true); }

}  // namespace

StopSignals::StopSignals() {
  stop_requested.store(false);
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &previous[i]);
    // nohup's wish holds.
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &previous[i], nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

bool StopSignals::requested() const { return stop_requested.load(); }

}  // namespace lockstep::train
