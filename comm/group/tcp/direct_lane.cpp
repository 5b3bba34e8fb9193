// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/direct_lane.h"

namespace lockstep::comm {

bool DirectLane::count(std::ptrdiff_t moved, std::size_t& done, std::uint64_t& all, bool& awaits) {
  broken_ = broken_ || moved < 0;
  awaits = moved == 0;
  if (moved <= 0) return false;
  done += static_cast<std::size_t>(moved);
  all += static_cast<std::uint64_t>(moved);
  return true;
}

const PieceHeader* DirectLane::incoming() {
  auto* const bytes = reinterpret_cast<char*>(&incoming_);
  while (received_ < sizeof incoming_) {
    if (!count(socket_.receive(bytes + received_, sizeof incoming_ - received_), received_, heard_, awaits_bytes_)) {
      return nullptr;
    }
  }
  return &incoming_;
}

bool DirectLane::receive(std::byte* payload) {
  const std::size_t whole = sizeof incoming_ + incoming_.bytes;
  while (received_ < whole) {
    std::byte* const next = payload + (received_ - sizeof incoming_);
    if (!count(socket_.receive(next, whole - received_), received_, heard_, awaits_bytes_)) return false;
  }
  received_ = 0;
  return true;
}

void DirectLane::begin_exchange() {
  heard_before_ = heard_;
  ready_to_receive();
  ready_to_send();
}

void DirectLane::end_exchange(std::chrono::nanoseconds took) {
  window_.review(socket_, static_cast<std::int64_t>(heard_ - heard_before_), took);
}

void DirectLane::post(const PieceHeader& header, const std::byte* payload) {
  outgoing_ = header;
  payload_ = payload;
  sent_ = 0;
  posted_ = true;
}

void DirectLane::send() {
  while (!idle()) {
    const bool in_header = sent_ < sizeof outgoing_;
    const std::size_t left = (in_header ? sizeof outgoing_ : outgoing_bytes()) - sent_;
    const void* const next =
        in_header ? reinterpret_cast<const std::byte*>(&outgoing_) + sent_ : payload_ + (sent_ - sizeof outgoing_);
    const bool has_more = in_header && outgoing_.bytes > 0;
    if (!count(has_more ? socket_.send_first(next, left) : socket_.send(next, left), sent_, said_, awaits_room_))
      return;
  }
  posted_ = false;
  sent_ = 0;
}

}  // namespace lockstep::comm
