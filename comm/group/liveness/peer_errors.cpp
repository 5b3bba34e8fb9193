// SPDX-License-Identifier: Apache-2.0
#include "comm/group/liveness/peer_errors.h"

#include <fmt/format.h>

namespace lockstep::comm {

namespace {

constexpr const char* kSameCalls = "Every rank must make the same calls in the same order.";

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{}.{} s", time.count() / 1000, time.count() % 1000 / 100);
}

}  // namespace

PeerError absent(const std::string& what, const std::string& names, PeerState state) {
  switch (state) {
    case PeerState::kFailed:
      return PeerError(what + ": " + names + " has failed", "Look for the first error there.");
    case PeerState::kLeft:
      return PeerError(what + ": " + names + " has already ended its run", kSameCalls);
    case PeerState::kRunning:
    case PeerState::kGone:
      break;
  }
  return PeerError(what + ": " + names + " is gone", "Killed or crashed; look at the last output there.");
}

PeerError late(const std::string& what, const std::string& names, std::chrono::milliseconds timeout) {
  const std::string who = names.empty() ? "it did not complete" : names + " did not arrive";
  return PeerError(what + ": " + who + " within " + seconds(timeout),
                   "It hangs, was stopped, or is slower than the timeout allows; look at its stack and last output.");
}

PeerError out_of_order(const std::string& what, int rank) {
  return PeerError(fmt::format("{}: rank {} has lost its group in an earlier error", what, rank));
}

PeerError disagreement(std::span<const Operation> operations, std::span<const int> ranks, const std::string& channel) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += fmt::format("{}rank {} calls {}", i == 0 ? "" : "; ", ranks[i], describe(operations[i]));
  }
  return PeerError(fmt::format("the ranks disagree on what to do in channel \"{}\": {}", channel, text), kSameCalls);
}

}  // namespace lockstep::comm
