// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/hang_watch.h"

#include <algorithm>
#include <utility>

#include "runtime/base/blocked_signals.h"
#include "runtime/train/rank_clocks.h"

namespace lockstep::train {

namespace {

constexpr std::chrono::milliseconds kLongestLook{1000};
/// A computation that takes so many times as long as the longest before hangs.
constexpr int kUsual = 3;

bool hangs(const LastEvents::Silence& silence, std::chrono::milliseconds limit) {
  const std::chrono::nanoseconds lasts = own_time() - silence.since;
  if (lasts < limit) return false;
  return silence.waits || (silence.longest.count() > 0 && lasts > kUsual * silence.longest);
}

}  // namespace

HangWatch::HangWatch(const LastEvents& events, std::chrono::milliseconds limit, std::function<void()> on_hang) {
  const BlockedSignals for_the_thread;
  thread_ = std::jthread([this, &events, limit, on_hang = std::move(on_hang)](const std::stop_token& stop) {
    std::chrono::nanoseconds told{-1};
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      never_.wait_for(lock, stop, std::clamp(limit / 4, std::chrono::milliseconds(1), kLongestLook),
                      [] { return false; });
      const auto silence = events.silence();
      if (stop.stop_requested() || !silence || silence->since == told || !hangs(*silence, limit)) continue;
      told = silence->since;
      on_hang();
    }
  });
}

}  // namespace lockstep::train
