// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <map>
#include <set>
#include <vector>

#include "runtime/base/process.h"
#include "runtime/train/record/status_board.h"

namespace lockstep::launcher {

/// The ranks of this machine, known from the status board once they have started.
class RankWatch {
 public:
  explicit RankWatch(train::StatusBoard board) : board_(std::move(board)) {}

  /// Watches ranks that have started since the last call.
  void find_started();
  bool any_started() const { return !started_.empty(); }
  int ranks() const { return board_.ranks(); }
  bool all_started() const { return static_cast<int>(started_.size()) == board_.ranks(); }

  /// For poll(): readable when a rank ends.
  std::vector<pollfd> descriptors() const;
  /// Ranks that have ended since the last call.
  std::vector<int> take_ended();
  /// Ranks that have started and not ended.
  std::vector<int> running() const;
  /// Whether every rank has been seen to end, however it did.
  bool all_ended() const { return ended_count_ == board_.ranks(); }
  /// Kills every rank that still runs.
  void kill_all() const;

  train::StatusBoard::Entry entry(int rank) const { return board_.get(rank); }
  /// Whether every rank is one of the others, or was.
  bool all_joined() const;
  /// Whether any rank is one of the others now.
  bool any_joined() const;
  /// Whether any rank has begun its start-up; from then on it obeys requests to save and exit.
  bool any_at_work() const;
  /// Whether any rank has met an error that it reports itself.
  bool any_failed() const;

 private:
  template <class Predicate>
  bool any(Predicate&& predicate) const;

  train::StatusBoard board_;
  std::set<int> started_;
  std::map<int, ProcessWatch> running_;  ///< by rank
  std::vector<int> ended_;               ///< before they could be watched
  int ended_count_ = 0;                  ///< of those that take_ended() has returned
};

}  // namespace lockstep::launcher
