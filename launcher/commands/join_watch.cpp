// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/join_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/group/network_choice.h"
#include "runtime/base/blocked_signals.h"

namespace lockstep::launcher {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLeastJoin{30'000};

PeerError late_join(milliseconds limit) {
  return PeerError(
      fmt::format("this rank has not joined the others within {} s: MPI's start does not return\n{}",
                  std::chrono::ceil<std::chrono::seconds>(limit).count(), comm::networks_of_this_host()),
      "A rank that has not started keeps the others waiting, and so does a network that leads nowhere: --interface "
      "NAME|NET, or LOCKSTEP_INTERFACE, names the one to use, and lockstep doctor --hosts tries them. Where the "
      "machine "
      "is only slow, raise comm.timeout_s.");
}

}  // namespace

milliseconds JoinWatch::limit_for(milliseconds timeout) { return std::max(2 * timeout, kLeastJoin); }

JoinWatch::JoinWatch(milliseconds limit, OnLate on_late) {
  const BlockedSignals for_the_thread;
  thread_ = std::jthread([this, limit, on_late = std::move(on_late)](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    never_.wait_for(lock, stop, limit, [] { return false; });
    if (!stop.stop_requested()) on_late(late_join(limit));
  });
}

}  // namespace lockstep::launcher
