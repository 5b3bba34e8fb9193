// SPDX-License-Identifier: Apache-2.0
#include "launcher/rank_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace lockstep::launcher {

using train::RankPhase;

RankWatch::~RankWatch() {
  for (const auto& [rank, descriptor] : running_) close(descriptor);
}

void RankWatch::find_started() {
  for (int rank = 0; rank < board_.ranks(); ++rank) {
    const auto pid = static_cast<pid_t>(board_.get(rank).pid);
    if (pid == 0 || !started_.insert(rank).second) continue;
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor >= 0) {
      running_.emplace(rank, descriptor);
    } else if (errno == ESRCH) {
      ended_.push_back(rank);
    }
  }
}

std::vector<pollfd> RankWatch::descriptors() const {
  std::vector<pollfd> result;
  for (const auto& [rank, descriptor] : running_) result.push_back({descriptor, POLLIN, 0});
  return result;
}

std::vector<int> RankWatch::take_ended() {
  std::vector<int> ended = std::exchange(ended_, {});
  std::erase_if(running_, [&](const auto& entry) {
    pollfd watch{entry.second, POLLIN, 0};
    if (poll(&watch, 1, 0) <= 0) return false;
    close(entry.second);
    ended.push_back(entry.first);
    return true;
  });
  return ended;
}

void RankWatch::kill_all() const {
  for (const auto& [rank, descriptor] : running_) syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0);
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
