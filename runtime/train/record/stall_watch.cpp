// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stall_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/blocked_signals.h"
#include "runtime/base/files/storage_calls.h"

namespace lockstep::train {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLongestLook{1000};

StorageError stall_error(const PendingCall& call, const std::string& where, milliseconds limit) {
  return StorageError(
      fmt::format("cannot {} {}, {}: the system has not answered for {} s", verb_of(call.operation), call.path, where,
                  std::chrono::ceil<std::chrono::seconds>(limit).count()),
      "The disk or its server hangs: see the system's log. What was saved before is left as it is. Where it "
      "is only slow, raise comm.timeout_s.");
}

}  // namespace

StallWatch::StallWatch(milliseconds limit, Where where, OnStall on_stall) {
  const BlockedSignals for_the_thread;
  thread_ = std::jthread(
      [this, limit, where = std::move(where), on_stall = std::move(on_stall)](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
          never_.wait_for(lock, stop, std::min(limit, kLongestLook), [] { return false; });
          const auto call = oldest_pending_call();
          if (!call || std::chrono::steady_clock::now() - call->begin < limit) continue;
          return on_stall(stall_error(*call, where(), limit));
        }
      });
}

}  // namespace lockstep::train
