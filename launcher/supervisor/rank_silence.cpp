// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/rank_silence.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/group/rank_names.h"

namespace lockstep::launcher {

using std::chrono::milliseconds;
using train::RankPhase;

namespace {

/// Where more time has passed, it is this process that stood still, and the ranks may have as well.
constexpr milliseconds kLongestLook{1000};
/// Less than this is no sign that start-up stands still: a busy machine takes seconds to start many ranks.
constexpr milliseconds kLeastStartUp{30'000};
constexpr const char* kMoreTime = "Where the machine is only slow, raise comm.timeout_s.";

/// A rank that could not join ends; until then it is one that has not joined.
bool is_joining(const train::StatusBoard::Entry& entry) {
  return entry.phase < RankPhase::kJoined || entry.phase == RankPhase::kNotJoined;
}

std::string seconds_text(milliseconds time) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace

std::optional<Error> RankSilence::look(const RankWatch& ranks, milliseconds elapsed) {
  elapsed = std::min(elapsed, kLongestLook);
  std::map<int, Pulse> pulses;
  for (const int rank : ranks.running()) {
    const train::StatusBoard::Entry entry = ranks.entry(rank);
    // A rank that is done leaves without a heartbeat.
    if (entry.exit_code >= 0) continue;
    const auto before = pulses_.find(rank);
    const bool silent = before != pulses_.end() && before->second.beats == entry.beats;
    pulses[rank] = {entry.beats, silent ? before->second.silent + elapsed : milliseconds(0)};
  }
  pulses_ = std::move(pulses);
  std::uint64_t start_up = 1;
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const train::StatusBoard::Entry entry = ranks.entry(rank);
    start_up += (entry.pid == 0 ? 0 : 1) + static_cast<std::uint64_t>(std::min(entry.phase, RankPhase::kJoined));
  }
  start_up_still_ = start_up == start_up_ ? start_up_still_ + elapsed : milliseconds(0);
  start_up_ = start_up;
  if (std::optional<Error> error = stopped(ranks)) return error;
  return not_joined(ranks);
}

std::optional<Error> RankSilence::stopped(const RankWatch& ranks) const {
  const auto reaches_limit = [this](const auto& pulse) { return pulse.second.silent >= limit_; };
  if (std::ranges::none_of(pulses_, reaches_limit)) return std::nullopt;
  // One cause may silence several, a moment apart.
  std::vector<int> silent;
  milliseconds time = milliseconds::max();
  for (const auto& [rank, pulse] : pulses_) {
    if (pulse.silent < limit_ / 2) continue;
    silent.push_back(rank);
    time = std::min(time, pulse.silent);
  }
  const train::StatusBoard::Entry entry = ranks.entry(silent.front());
  const std::optional<ProcessFacts> facts = process_facts(static_cast<pid_t>(entry.pid));
  const char state = facts ? facts->state : '?';
  const char* how = state == 'T' || state == 't' ? "stopped" : state == 'D' ? "waiting for a device" : "without a sign";
  return PeerError(fmt::format("{} {} been {} for {}, {}", comm::rank_names(silent), silent.size() > 1 ? "have" : "has",
                               how, seconds_text(time), train::str(entry)),
                   kMoreTime);
}

std::optional<Error> RankSilence::not_joined(const RankWatch& ranks) const {
  if (start_up_still_ < std::max(limit_, kLeastStartUp)) return std::nullopt;
  std::vector<int> unseen, joining;
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const train::StatusBoard::Entry entry = ranks.entry(rank);
    if (is_joining(entry)) (entry.pid == 0 ? unseen : joining).push_back(rank);
  }
  if (unseen.empty() && joining.empty()) return std::nullopt;
  const auto tell = [&](const std::vector<int>& who, const char* what) {
    return fmt::format("{} {} {} for {}", comm::rank_names(who), who.size() > 1 ? "have" : "has", what,
                       seconds_text(start_up_still_));
  };
  const std::string what = unseen.empty() ? tell(joining, "not joined the others") : tell(unseen, "not started");
  return PeerError(what, kMoreTime);
}

}  // namespace lockstep::launcher
