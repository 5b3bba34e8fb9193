// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/search.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace lockstep::comm {

namespace {

/// How long one place, which may be a stranger's, gets to connect and to answer.
constexpr auto kAnswer = std::chrono::seconds(2);
/// Between two attempts at one place.
constexpr auto kBetweenSearches = std::chrono::milliseconds(20);

}  // namespace

HubSearch::HubSearch(std::vector<Place> places, const Hello& hello, const RunKey& key, std::string whom,
                     std::chrono::milliseconds head_start)
    : places_(std::move(places)), hello_(hello), key_(key), whom_(std::move(whom)) {
  const Clock::time_point now = Clock::now();
  for (std::size_t place = 0; place < places_.size(); ++place) next_try_.push_back(now + place * head_start);
}

std::optional<HubSearch::Found> HubSearch::next(Clock::time_point end) {
  do {
    begin();
    wait(end);
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
      const State state = go_on(*attempt);
      if (state == State::kWaits) {
        ++attempt;
        continue;
      }
      next_try_[attempt->place] = Clock::now() + kBetweenSearches;
      Found found{std::move(attempt->socket), attempt->welcome};
      attempt = attempts_.erase(attempt);
      if (state == State::kAnswered) return found;
    }
  } while (Clock::now() < end);
  return std::nullopt;
}

void HubSearch::begin() {
  const Clock::time_point now = Clock::now();
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (now < next_try_[place]) continue;
    if (std::ranges::any_of(attempts_, [place](const Attempt& each) { return each.place == place; })) continue;
    next_try_[place] = now + kBetweenSearches;
    for (Socket& socket : begin_connecting(places_[place].first, places_[place].second, reason_)) {
      attempts_.push_back({.place = place, .socket = std::move(socket), .end = now + kAnswer});
    }
  }
}

void HubSearch::wait(Clock::time_point end) const {
  std::vector<pollfd> watched;
  for (const Attempt& attempt : attempts_) {
    const bool heard = attempt.greeted == sizeof attempt.greeting;
    const bool says = !attempt.connected || (heard && attempt.sent < sizeof attempt.hello);
    watched.push_back({attempt.socket.descriptor(), static_cast<short>(says ? POLLOUT : POLLIN), 0});
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(std::min(end - Clock::now(), Clock::duration(kBetweenSearches)));
  poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
}

HubSearch::State HubSearch::connect(Attempt& attempt) {
  pollfd ready{attempt.socket.descriptor(), POLLOUT, 0};
  attempt.connected = poll(&ready, 1, 0) > 0;
  const int error = attempt.connected ? attempt.socket.connect_error() : Clock::now() > attempt.end ? ETIMEDOUT : 0;
  if (error == 0) return State::kWaits;
  reason_ = std::generic_category().message(error);
  return State::kOver;
}

Hello HubSearch::introduction(const Attempt& attempt) const {
  Hello hello = hello_;
  // A single place is the right one, even where it is forwarded to another port.
  hello.port = places_.size() == 1 ? 0 : places_[attempt.place].second;
  hello.nonce = fresh_nonce();
  hello.proof = proof_of(hello, attempt.greeting, key_);
  return hello;
}

HubSearch::State HubSearch::talk(Attempt& attempt) const {
  const auto move = [&](auto transfer, auto* data, std::size_t& done, std::size_t bytes) {
    std::ptrdiff_t moved = 1;
    while (done < bytes && moved > 0) {
      moved = (attempt.socket.*transfer)(reinterpret_cast<char*>(data) + done, bytes - done);
      done += static_cast<std::size_t>(std::max<std::ptrdiff_t>(moved, 0));
    }
    return done == bytes ? State::kAnswered : moved < 0 ? State::kOver : State::kWaits;
  };
  if (attempt.greeted < sizeof attempt.greeting) {
    const State greeted = move(&Socket::receive, &attempt.greeting, attempt.greeted, sizeof attempt.greeting);
    if (greeted != State::kAnswered) return greeted;
    if (attempt.greeting.magic != kGreetingMagic) return State::kOver;
    if (attempt.greeting.version != kTcpVersion) {
      attempt.welcome.answer = Welcome::Answer::kRefused;
      attempt.welcome.reason = ShortText::of("it runs another version of lockstep than " + whom_);
      return State::kAnswered;
    }
    attempt.hello = introduction(attempt);
  }
  const State said = move(&Socket::send, &attempt.hello, attempt.sent, sizeof attempt.hello);
  if (said != State::kAnswered) return said;
  const State answered = move(&Socket::receive, &attempt.welcome, attempt.received, sizeof attempt.welcome);
  if (answered != State::kAnswered) return answered;
  const Welcome& welcome = attempt.welcome;
  if (welcome.magic != kWelcomeMagic) return State::kOver;
  // Others than the run's hub may well say that this is not their run.
  const bool proven = are_equal(welcome.proof, proof_of(welcome, attempt.greeting, attempt.hello, key_));
  const bool needs_proof =
      welcome.answer == Welcome::Answer::kWelcome || welcome.answer == Welcome::Answer::kDifferentJob;
  return proven || !needs_proof ? State::kAnswered : State::kOver;
}

HubSearch::State HubSearch::go_on(Attempt& attempt) {
  if (!attempt.connected) {
    const State state = connect(attempt);
    if (!attempt.connected || state == State::kOver) return state;
  }
  const State state = talk(attempt);
  if (state == State::kAnswered || (state == State::kWaits && Clock::now() < attempt.end)) return state;
  if (strangers_.empty()) strangers_ = "whoever answers is not " + whom_ + " of a run";
  return State::kOver;
}

}  // namespace lockstep::comm
