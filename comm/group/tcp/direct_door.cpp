// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/direct_door.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

/// How long a caller may take to say who it is.
constexpr auto kCallersWord = std::chrono::seconds(10);
/// How many callers may be about to say who they are: the oldest one makes room for the next.
constexpr std::size_t kMostCallers = 256;
/// How long a wait lasts where the process has no descriptor for a caller that waits.
constexpr auto kDoorNap = milliseconds(100);

}  // namespace

DirectDoor::DirectDoor(Socket listener, const Hello& own, std::vector<Hello> cards, int lanes, const RunKey& key)
    : listener_(std::move(listener)), own_(own), cards_(std::move(cards)), lanes_(lanes), key_(key) {}

std::optional<DirectDoor::Guest> DirectDoor::next(Clock::time_point end) {
  do {
    accept_all();
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      if (has_come(*caller)) {
        Guest guest{caller->place, caller->introduction.hello().lane, std::move(caller->socket)};
        callers_.erase(caller);
        return guest;
      }
      caller = caller->gone ? callers_.erase(caller) : std::next(caller);
    }
    wait(end);
  } while (Clock::now() < end);
  return std::nullopt;
}

void DirectDoor::accept_all() {
  while (Socket socket = listener_.accept()) {
    if (callers_.size() == kMostCallers) callers_.pop_front();
    Caller& caller = callers_.emplace_back();
    caller.socket = std::move(socket);
    caller.accepted = Clock::now();
    caller.introduction.greet(caller.socket);
  }
}

void DirectDoor::wait(Clock::time_point end) const {
  std::vector<pollfd> watched{{listener_.descriptor(), POLLIN, 0}};
  for (const Caller& caller : callers_) watched.push_back({caller.socket.descriptor(), POLLIN, 0});
  const auto left = std::min<Clock::duration>(end - Clock::now(), kDoorNap);
  poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(ceil<milliseconds>(left).count(), 0)));
}

bool DirectDoor::has_come(Caller& caller) {
  caller.gone = Clock::now() > caller.accepted + kCallersWord;
  if (caller.gone) return false;
  if (caller.place < 0) {
    const Introduction::State state = caller.introduction.hear(caller.socket);
    caller.gone = state == Introduction::State::kOver;
    if (state != Introduction::State::kComplete) return false;
    const Welcome welcome = judge(caller);
    caller.introduction.answer(caller.socket, welcome, own_, key_);
    caller.gone = welcome.answer != Welcome::Answer::kWelcome;
    if (caller.gone) return false;
  }
  char word = 0;
  const std::ptrdiff_t received = caller.socket.receive(&word, 1);
  caller.gone = received < 0 || (received == 1 && word != kTaken);
  return received == 1 && word == kTaken;
}

Welcome DirectDoor::judge(Caller& caller) const {
  const auto refused = [](const char* reason) {
    return Welcome{.answer = Welcome::Answer::kOtherRun, .reason = ShortText::of(reason)};
  };
  const Hello& hello = caller.introduction.hello();
  // First: of strangers nothing that they say counts.
  if (!caller.introduction.proves(key_)) return refused("it belongs to another run");
  const auto is_caller = [&](const Hello& card) {
    return card.rank == hello.rank && card.process == hello.process && card.host.str() == hello.host.str();
  };
  const auto card = std::ranges::find_if(cards_, is_caller);
  if (hello.channel != own_.channel || hello.lane < 0 || hello.lane >= lanes_ || card == cards_.end()) {
    return refused("it looks for another rank or channel");
  }
  caller.place = static_cast<int>(card - cards_.begin());
  return {};
}

}  // namespace lockstep::comm
