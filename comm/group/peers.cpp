// SPDX-License-Identifier: Apache-2.0
#include "comm/group/peers.h"

#include <algorithm>

#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

std::string seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000.0);
  return text.substr(0, text.find('.') + 2) + " s";
}

}  // namespace

Peers::Peers(int rank, const std::map<int, pid_t>& processes) : rank_(rank) {
  for (const auto& [peer, pid] : processes) processes_.emplace(peer, ProcessWatch(pid));
}

void Peers::publish(std::map<int, SharedWord*> states) { states_ = std::move(states); }

void Peers::leave() { set_state(PeerState::kLeft); }

void Peers::fail() {
  failed_ = true;
  // That it had left is what explains the others' errors, and perhaps its own.
  if (state_of(rank_) != PeerState::kLeft) set_state(PeerState::kFailed);
}

void Peers::require_working(const std::string& what) const {
  if (failed()) throw PeerError(what + ": rank " + std::to_string(rank_) + " has lost its group in an earlier error");
}

void Peers::require_alive(std::span<const int> ranks, const std::string& what) {
  // Two ranks at the end of their runs wait for each other and see each other as left.
  const bool leaving = state_of(rank_) == PeerState::kLeft;
  std::vector<int> failed, gone, left;
  for (const int rank : ranks) {
    const auto process = processes_.find(rank);
    if (state_of(rank) == PeerState::kFailed) {
      failed.push_back(rank);
    } else if (process != processes_.end() && process->second.gone()) {
      gone.push_back(rank);
    } else if (state_of(rank) == PeerState::kLeft && !leaving) {
      left.push_back(rank);
    }
  }
  if (!gone.empty()) lose(what + ": " + names(gone) + " is gone", "Killed or crashed; look at the last output there.");
  if (!failed.empty()) lose(what + ": " + names(failed) + " has failed", "Look for the first error there.");
  if (!left.empty()) {
    lose(what + ": " + names(left) + " has already ended its run",
         "Every rank must make the same calls in the same order.");
  }
}

void Peers::require_agreement(std::span<const Operation> operations, std::span<const int> ranks,
                              const std::string& channel) {
  const auto differs = [&](const Operation& operation) { return !agree(operation, operations.front()); };
  if (std::ranges::none_of(operations, differs)) return;
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "rank " : "; rank ") + std::to_string(ranks[i]) + " calls " + describe(operations[i]);
  }
  lose("the ranks disagree on what to do in channel \"" + channel + "\": " + text,
       "Every rank must make the same calls in the same order.");
}

void Peers::lose(const std::string& what, const std::string& advice) {
  fail();
  throw PeerError(what, advice);
}

void Peers::lose_late(std::span<const int> ranks, const std::string& what, std::chrono::milliseconds timeout) {
  const std::string who = ranks.empty() ? "it did not complete" : names(ranks) + " did not arrive";
  lose(what + ": " + who + " within " + seconds(timeout),
       "It hangs, was stopped, or is slower than the timeout allows; look at its stack and last output.");
}

std::string Peers::names(std::span<const int> ranks) const {
  std::string text;
  for (const int rank : ranks) {
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
    const auto process = processes_.find(rank);
    if (process != processes_.end()) text += " (process " + std::to_string(process->second.pid()) + ")";
  }
  return text;
}

PeerState Peers::state_of(int rank) const {
  const auto state = states_.find(rank);
  return state == states_.end() ? PeerState::kRunning : PeerState{state->second->load()};
}

void Peers::set_state(PeerState state) {
  const auto own = states_.find(rank_);
  if (own != states_.end()) own->second->store(static_cast<std::uint32_t>(state));
}

}  // namespace lockstep::comm
