// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_watch.h"

#include <csignal>
#include <optional>
#include <utility>

namespace lockstep::launcher {

using train::RankPhase;

void RankWatch::find_started() {
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    const train::StatusBoard::Entry entry = board_.get(rank);
    const auto pid = static_cast<pid_t>(entry.pid);
    // 0 until the rank has started; and no rank that mpirun starts is the machine's first process.
    if (pid <= 1 || !started_.insert(rank).second) continue;
    ProcessWatch process(pid);
    // A later process may have got the number of one that has ended.
    const std::optional<ProcessFacts> facts = process_facts(pid);
    const bool other = facts && facts->started != entry.started && entry.started != 0;
    if (process.descriptor() >= 0 && !other) {
      running_.emplace(rank, std::move(process));
    } else if (other || !process_exists(pid)) {
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
  ended_count_ += static_cast<int>(ended.size());
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

bool RankWatch::all_joined() const {
  return board_.ranks() > 0 && !any([](RankPhase phase) {
           return phase == RankPhase::kNone || phase == RankPhase::kJoin || phase == RankPhase::kNotJoined;
         });
}

bool RankWatch::any_joined() const {
  return any([](RankPhase phase) {
    return phase >= RankPhase::kJoined && phase != RankPhase::kNotJoined && phase != RankPhase::kFailed;
  });
}

bool RankWatch::any_at_work() const {
  return any([](RankPhase phase) { return phase > RankPhase::kJoined && phase != RankPhase::kNotJoined; });
}

std::vector<int> RankWatch::running() const {
  std::vector<int> ranks;
  for (const auto& [rank, process] : running_) ranks.push_back(rank);
  return ranks;
}

bool RankWatch::any_failed() const {
  return any([](RankPhase phase) { return phase == RankPhase::kFailed; });
}

}  // namespace lockstep::launcher
