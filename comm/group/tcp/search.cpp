// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/search.h"

#include <poll.h>

#include <algorithm>
#include <system_error>

namespace lockstep::comm {

namespace {

/// How long one place, which may be a stranger's, gets to connect and to answer.
constexpr auto kAnswer = std::chrono::seconds(2);
/// Between two attempts at one place.
constexpr auto kNap = std::chrono::milliseconds(20);

}  // namespace

HubSearch::HubSearch(std::vector<Place> places, const Hello& hello)
    : places_(std::move(places)), next_try_(places_.size()), hello_(hello) {}

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
      next_try_[attempt->place] = Clock::now() + kNap;
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
    next_try_[place] = now + kNap;
    for (Socket& socket : begin_connecting(places_[place].first, places_[place].second, reason_)) {
      attempts_.push_back({.place = place, .socket = std::move(socket), .end = now + kAnswer});
    }
  }
}

void HubSearch::wait(Clock::time_point end) const {
  std::vector<pollfd> watched;
  for (const Attempt& attempt : attempts_) {
    const bool says = attempt.sent < sizeof hello_;
    watched.push_back({attempt.socket.descriptor(), static_cast<short>(says ? POLLOUT : POLLIN), 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(end - Clock::now(), Clock::duration(kNap)));
  poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
}

HubSearch::State HubSearch::go_on(Attempt& attempt) {
  if (!attempt.connected) {
    pollfd ready{attempt.socket.descriptor(), POLLOUT, 0};
    attempt.connected = poll(&ready, 1, 0) > 0;
    const int error = attempt.connected ? attempt.socket.connect_error() : Clock::now() > attempt.end ? ETIMEDOUT : 0;
    if (error != 0) reason_ = std::generic_category().message(error);
    if (error != 0) return State::kOver;
    if (!attempt.connected) return State::kWaits;
  }
  const auto move = [&](auto&& transfer, auto* data, std::size_t& done, std::size_t bytes) {
    std::ptrdiff_t moved = 1;
    while (done < bytes && moved > 0) {
      moved = transfer(reinterpret_cast<char*>(data) + done, bytes - done);
      done += static_cast<std::size_t>(std::max<std::ptrdiff_t>(moved, 0));
    }
    return moved >= 0;
  };
  const auto send = [&](const char* data, std::size_t bytes) { return attempt.socket.send(data, bytes); };
  const auto receive = [&](char* data, std::size_t bytes) { return attempt.socket.receive(data, bytes); };
  const bool open = move(send, &hello_, attempt.sent, sizeof hello_) &&
                    move(receive, &attempt.welcome, attempt.received, sizeof attempt.welcome);
  const bool answered = attempt.received == sizeof attempt.welcome && attempt.welcome.magic == kWelcomeMagic;
  if (answered) return State::kAnswered;
  if (open && attempt.received < sizeof attempt.welcome && Clock::now() < attempt.end) return State::kWaits;
  if (strangers_.empty()) strangers_ = "whoever answers is not rank 0 of a run";
  return State::kOver;
}

}  // namespace lockstep::comm
