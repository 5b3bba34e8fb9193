// SPDX-License-Identifier: Apache-2.0
#include "comm/group/liveness/peers.h"

#include <fmt/format.h>

namespace lockstep::comm {

void Peers::watch(const std::map<int, pid_t>& processes) {
  for (const auto& [peer, pid] : processes) processes_.emplace(peer, ProcessWatch(pid));
}

void Peers::publish(std::map<int, SharedWord*> states, std::shared_ptr<const void> memory) {
  states_ = std::move(states);
  memory_ = std::move(memory);
}

void Peers::leave() { set_state(PeerState::kLeft); }

void Peers::fail() {
  const bool first = !failed_.exchange(true);
  // A rank that had left explains the others' errors, and perhaps its own.
  if (state_of(rank_) != PeerState::kLeft) set_state(PeerState::kFailed);
  if (first && on_failure_) on_failure_();
}

void Peers::require_working(const std::string& what) const {
  if (failed()) throw out_of_order(what, rank_);
}

void Peers::require_alive(std::span<const int> ranks, const std::string& what) {
  // Two ranks at the end of their runs wait for each other and see each other as left.
  const bool leaving = state_of(rank_) == PeerState::kLeft;
  std::vector<int> failed, gone, left;
  for (const int rank : ranks) {
    const auto process = processes_.find(rank);
    if (state_of(rank) == PeerState::kFailed) {
      failed.push_back(rank);
    } else if (state_of(rank) == PeerState::kLeft && !leaving) {
      left.push_back(rank);  // its process may have ended since, by our error
    } else if (process != processes_.end() && process->second.gone()) {
      gone.push_back(rank);
    }
  }
  if (!gone.empty()) lose(absent(what, names(gone), PeerState::kGone));
  if (!failed.empty()) lose(absent(what, names(failed), PeerState::kFailed));
  if (!left.empty()) lose(absent(what, names(left), PeerState::kLeft));
}

void Peers::require_agreement(std::span<const Operation> operations, std::span<const int> ranks,
                              const std::string& channel) {
  if (!agree(operations)) lose(disagreement(operations, ranks, channel));
}

void Peers::lose(const PeerError& error) {
  fail();
  throw error;
}

void Peers::lose_late(std::span<const int> ranks, const std::string& what, std::chrono::milliseconds timeout) {
  lose(late(what, names(ranks), timeout));
}

std::string Peers::names(std::span<const int> ranks) const {
  std::string text;
  for (const int rank : ranks) {
    const auto name = names_.find(rank);
    text += (text.empty() ? "" : ", ") + (name == names_.end() ? fmt::format("rank {}", rank) : name->second);
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
