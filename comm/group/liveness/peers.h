// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/liveness/peer_errors.h"
#include "comm/group/liveness/wait_clock.h"
#include "comm/group/operation.h"
#include "comm/group/shared_memory/futex.h"
#include "runtime/base/process.h"

namespace lockstep::comm {

/// The other ranks as one rank sees them: which of them have ended or failed. Ranks of other nodes are known only by
/// their silence. Thread-safe but for name(), watch() and publish().
class Peers {
 public:
  /// `on_failure` is called when this rank fails, once.
  explicit Peers(int rank, std::function<void()> on_failure = {}) : rank_(rank), on_failure_(std::move(on_failure)) {}

  /// The names that errors call ranks by, "rank 1 (process 64 on b)"; before, they have their numbers alone.
  void name(std::map<int, std::string> names) { names_ = std::move(names); }
  /// Watches the processes of this machine's ranks, which are alive now.
  void watch(const std::map<int, pid_t>& processes);
  /// Lets the ranks of a node see each other's state, in shared memory: one word a world rank. Keeps `memory`.
  void publish(std::map<int, SharedWord*> states, std::shared_ptr<const void> memory);

  /// Tells the others that this rank makes no more calls because its run is over.
  void leave();
  /// Tells the others that this rank makes no more calls after an error.
  void fail();
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  /// Throws PeerError when this rank has failed before: its order of calls is lost.
  void require_working(const std::string& what) const;
  /// Throws PeerError when one of `ranks`, which `what` waits for, will never arrive.
  void require_alive(std::span<const int> ranks, const std::string& what);
  /// Throws PeerError that lists each rank's call where the ranks disagree; `operations[i]` is that of `ranks[i]`.
  void require_agreement(std::span<const Operation> operations, std::span<const int> ranks, const std::string& channel);
  /// fail(), then throws the error.
  [[noreturn]] void lose(const PeerError& error);
  /// lose() because `ranks` did not arrive in time; where `ranks` is empty, all arrived and the call did not end.
  [[noreturn]] void lose_late(std::span<const int> ranks, const std::string& what, std::chrono::milliseconds timeout);

  /// The clock of the waits of all channels.
  WaitClock& waits() { return waits_; }

  /// "rank 1 (process 4711), rank 2 (process 64 on b)"
  std::string names(std::span<const int> ranks) const;

 private:
  PeerState state_of(int rank) const;
  void set_state(PeerState state);

  int rank_;
  std::function<void()> on_failure_;
  std::map<int, std::string> names_;
  std::map<int, ProcessWatch> processes_;
  std::map<int, SharedWord*> states_;
  std::shared_ptr<const void> memory_;  // of the states
  std::atomic<bool> failed_ = false;
  WaitClock waits_;
};

}  // namespace lockstep::comm
