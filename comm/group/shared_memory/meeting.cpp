// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/meeting.h"

#include <utility>

#include "runtime/base/core_yield.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

using Clock = std::chrono::steady_clock;

// A wait first burns its core, which answers within a microsecond; then yields it, which is nearly as fast where nobody
// wants it and lets late ranks run where they share cores; then, or where others want the core, sleeps.
constexpr auto kSpinning = std::chrono::microseconds(20);
constexpr auto kYielding = std::chrono::microseconds(200);
constexpr int kPausesPerLook = 8;
constexpr auto kInspection = std::chrono::milliseconds(100);

}  // namespace

SharedMeeting::SharedMeeting(std::shared_ptr<SharedWindow> window, const Topology& topology, Peers& peers,
                             std::string channel, std::chrono::milliseconds timeout)
    : window_(std::move(window)),
      rank_(topology.local_rank),
      spare_cores_(topology.spare_cores),
      peers_(peers),
      channel_(std::move(channel)),
      timeout_(timeout),
      operations_(window_->parts.size()) {
  for (std::byte* const part : window_->parts) blocks_.push_back(reinterpret_cast<Block*>(part));
}

const std::vector<Operation>& SharedMeeting::meet(const Operation& mine) {
  if (peers_.failed()) peers_.require_working(describe(mine, channel_));
  ++number_;
  arrive(mine);
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) wait_for(r, mine);
    operations_[static_cast<std::size_t>(r)] = block(r).arrivals[number_ % 2].operation;
  }
  peers_.require_agreement(operations_, window_->ranks, channel_);
  return operations_;
}

bool SharedMeeting::arrived(int local_rank) const {
  return block(local_rank).arrivals[number_ % 2].number.load(std::memory_order_acquire) == number_;
}

void SharedMeeting::arrive(const Operation& mine) {
  Block& own = block(rank_);
  Block::Arrival& arrival = own.arrivals[number_ % 2];
  arrival.operation = mine;
  // Sequentially consistent, as is the other side: either it sees the number or we see that it sleeps.
  arrival.number.store(number_);
  if (own.sleepers.load() > 0) futex_wake_all(arrival.number);
}

void SharedMeeting::wait_for(int local_rank, const Operation& mine) {
  if (arrived(local_rank)) return;
  const WaitClock::Wait wait(peers_.waits());
  const TraceRange range("wait for other ranks", RangeKind::kCommunication);
  const auto began = Clock::now();
  for (auto waited = Clock::duration(0); waited < kYielding; waited = Clock::now() - began) {
    const bool spins = spare_cores_ && waited < kSpinning;
    for (int i = 0; i < kPausesPerLook && spins; ++i) {
      if (arrived(local_rank)) return;
      spin_pause();
    }
    if (arrived(local_rank)) return;
    if (!spins && !yield_core()) break;
  }
  sleep_until_arrival(local_rank, mine);
}

void SharedMeeting::sleep_until_arrival(int local_rank, const Operation& mine) {
  Block& late = block(local_rank);
  const SharedWord& number = late.arrivals[number_ % 2].number;
  const auto end = Clock::now() + timeout_;
  while (!arrived(local_rank)) {
    late.sleepers.fetch_add(1);
    const std::uint32_t before = number.load();
    if (before != number_) futex_wait(number, before, kInspection);
    late.sleepers.fetch_sub(1);
    if (arrived(local_rank)) return;
    const std::vector<int> ranks = missing();
    peers_.require_alive(ranks, describe(mine, channel_));
    if (Clock::now() >= end && !ranks.empty()) peers_.lose_late(ranks, describe(mine, channel_), timeout_);
  }
}

std::vector<int> SharedMeeting::missing() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r) {
    if (!arrived(r)) ranks.push_back(window_->ranks[static_cast<std::size_t>(r)]);
  }
  return ranks;
}

}  // namespace lockstep::comm
