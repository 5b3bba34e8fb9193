// SPDX-License-Identifier: Apache-2.0
#include "launcher/rank_watch.h"

#include <csignal>
#include <utility>

namespace lockstep::launcher {

using train::RankPhase;

void RankWatch::find_started() {
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    const auto pid = static_cast<pid_t>(board_.get(rank).pid);
    // 0 until the rank has started; and no rank that mpirun starts is the machine's first process.
    if (pid <= 1 || !started_.insert(rank).second) continue;
    ProcessWatch process(pid);
    if (process.descriptor() >= 0) {
      running_.emplace(rank, std::move(process));
    } else if (!process_exists(pid)) {
      ended_.push_back(rank);
    }
  }
}

std::vector<pollfd> RankWatch::descriptors() const {
  std::vector<pollfd> result;
  for (const auto& [rank, process] : running_) result.push_back({process.descriptor(), POLLIN, 0});
  return result;
}

std::vector<int> RankWatch::take_ended() {
  std::vector<int> ended = std::exchange(ended_, {});
  std::erase_if(running_, [&](const auto& entry) {
    if (!entry.second.gone()) return false;
    ended.push_back(entry.first);
    return true;
  });
  return ended;
}

void RankWatch::kill_all() const {
  for (const auto& [rank, process] : running_) process.signal(SIGKILL);
}

template <class Predicate>
bool RankWatch::any(Predicate&& predicate) const {
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    if (predicate(board_.get(rank).phase)) return true;
  }
  return false;
}

bool RankWatch::any_at_work() const {
  return any([](RankPhase phase) { return phase != RankPhase::kNone; });
}

bool RankWatch::any_failed() const {
  return any([](RankPhase phase) { return phase == RankPhase::kFailed; });
}

}  // namespace lockstep::launcher
