// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/meetings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/group/reduction.h"

namespace lockstep::comm {

namespace {

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

Payload concatenated(const std::vector<Payload>& parts) {
  auto whole = std::make_shared<std::vector<std::byte>>();
  for (const Payload& part : parts) whole->insert(whole->end(), part->begin(), part->end());
  return whole;
}

}  // namespace

TcpMeetings::TcpMeetings(int size, std::chrono::milliseconds timeout, Send send)
    : size_(size), timeout_(timeout), send_(std::move(send)), ranks_(at(size)), states_(at(size)) {
  std::iota(ranks_.begin(), ranks_.end(), 0);
  for (const int rank : ranks_) names_.push_back("rank " + std::to_string(rank));
  open_channel(next_channel_++, kFirstChannel);
}

TcpMeetings::Channel& TcpMeetings::open_channel(std::int32_t id, const std::string& name) {
  Channel& channel = channels_[id];
  channel.name = name;
  channel.arrived.resize(at(size_));
  channel.operations.resize(at(size_));
  channel.parts.assign(at(size_), nothing_);
  channel.device_waits.resize(at(size_));
  return channel;
}

void TcpMeetings::take(int rank, const Frame& frame) {
  if (frame.header.kind == FrameKind::kFailed) return lose(rank, PeerState::kFailed);
  const auto found = channels_.find(frame.header.channel);
  if (found == channels_.end()) return lose(rank, PeerState::kFailed);
  if (frame.header.kind == FrameKind::kDeviceWait) return wait_on_device(rank, found->second, frame.header);
  arrive(rank, found->second, found->first, frame);
}

void TcpMeetings::arrive(int rank, Channel& channel, std::int32_t id, const Frame& frame) {
  if (channel.count == 0) channel.began = Clock::now();
  channel.count += channel.arrived[at(rank)] ? 0 : 1;
  channel.arrived[at(rank)] = true;
  channel.operations[at(rank)] = frame.header.operation;
  channel.parts[at(rank)] = frame.payload;
  if (frame.header.operation.kind == OperationKind::kLeave) {
    ending_ = true;
    lose(rank, PeerState::kLeft);
  }
  if (channel.count == size_) {
    finish(channel, id);
  } else {
    require_present(channel, id);
  }
}

void TcpMeetings::lose(int rank, PeerState state) {
  // The first word is what explains the others' errors, and perhaps its own.
  if (states_[at(rank)] != PeerState::kRunning) return;
  states_[at(rank)] = state;
  lost_.push_back(rank);
  for (auto& [id, channel] : channels_) require_present(channel, id);
  // A rank that is somewhere else learns it too, as the hub may be gone when it comes to ask.
  if (state == PeerState::kLeft || std::exchange(told_, true)) return;
  for (const int other : ranks_) {
    const FrameHeader news{.kind = FrameKind::kNews, .number = static_cast<std::int64_t>(state)};
    if (other != rank) send_(other, news, payload_of(names_[at(rank)]));
  }
}

void TcpMeetings::require_present(Channel& channel, std::int32_t id) {
  if (channel.count == 0) return;
  if (const auto error = absence(not_in(channel.arrived), what(channel))) end_with(channel, id, *error);
}

void TcpMeetings::finish(Channel& channel, std::int32_t id) {
  if (!agree(channel.operations)) {
    return end_with(channel, id, disagreement(channel.operations, ranks_, channel.name));
  }
  int only = -1;
  Payload result;
  try {
    result = combine(channel, only);
  } catch (const std::exception& error) {
    return end_with(channel, id, PeerError(what(channel) + ": " + error.what()));
  }
  close_meeting(channel);
  for (const int rank : ranks_) {
    send_(rank, {.kind = FrameKind::kResult, .channel = id}, only < 0 || only == rank ? result : nothing_);
  }
}

Payload TcpMeetings::combine(const Channel& channel, int& only) {
  const Operation& operation = channel.operations.front();
  switch (operation.kind) {
    case OperationKind::kAllReduce:
      return reduced(channel);
    case OperationKind::kReduceScatter:
      only = operation.root;
      return reduced(channel);
    case OperationKind::kBroadcast:
      return channel.parts.at(at(operation.root));
    case OperationKind::kAllGather:
      return concatenated(channel.parts);
    case OperationKind::kDuplicate: {
      const std::int32_t id = next_channel_++;
      open_channel(id, text_of(channel.parts.front()));
      return payload_of(&id, sizeof id);
    }
    case OperationKind::kBarrier:
    case OperationKind::kAllocate:
    case OperationKind::kLeave:
    case OperationKind::kReplay:
    case OperationKind::kJoin:
      break;
  }
  return nothing_;
}

Payload TcpMeetings::reduced(const Channel& channel) const {
  const Operation& operation = channel.operations.front();
  const std::size_t bytes = channel.parts.front()->size();
  std::vector<float> premultiply;
  std::vector<const void*> sources;
  for (std::size_t r = 0; r < at(size_); ++r) {
    if (channel.parts[r]->size() != bytes) throw PeerError(names_[r] + " has sent another amount of data");
    premultiply.push_back(channel.operations[r].premultiply);
    sources.push_back(channel.parts[r]->data());
  }
  auto result = std::make_shared<std::vector<std::byte>>(bytes);
  reduce(reduction_of(operation, std::move(premultiply)), sources, result->data(),
         static_cast<std::int64_t>(bytes / size_of(operation.dtype)));
  return result;
}

std::vector<bool> TcpMeetings::close_meeting(Channel& channel) {
  channel.count = 0;
  channel.parts.assign(at(size_), nothing_);
  return std::exchange(channel.arrived, std::vector<bool>(at(size_)));
}

void TcpMeetings::end_with(Channel& channel, std::int32_t id, const PeerError& error) {
  const std::vector<bool> arrived = close_meeting(channel);
  const Payload text = encode(error);
  for (const int rank : ranks_) {
    if (arrived[at(rank)]) send_(rank, {.kind = FrameKind::kError, .channel = id}, text);
  }
}

TcpMeetings::Clock::time_point TcpMeetings::next_deadline() const {
  auto next = Clock::time_point::max();
  for (const auto& [id, channel] : channels_) {
    if (channel.count > 0) next = std::min(next, channel.began + timeout_);
  }
  return next;
}

void TcpMeetings::expire(Clock::time_point now) {
  for (auto& [id, channel] : channels_) {
    if (channel.count == 0 || now < channel.began + timeout_) continue;
    end_with(channel, id, late(what(channel), names(not_in(channel.arrived)), timeout_));
  }
}

void TcpMeetings::wait_on_device(int rank, Channel& channel, const FrameHeader& header) {
  channel.device_waits[at(rank)] = {header.number, header.operation};
  const std::string what = describe(header.operation, channel.name) + ", number " + std::to_string(header.number);
  std::vector<int> missing;
  std::vector<Operation> waits;
  for (const int r : ranks_) {
    const DeviceWait& wait = channel.device_waits[at(r)];
    if (wait.number != header.number) missing.push_back(r);
    waits.push_back(wait.operation);
  }
  // One that waits here too and then gave up is not to blame; whoever is missing is. One that is gone was killed.
  std::vector<int> awaited;
  for (const int r : ranks_) {
    const bool here = channel.device_waits[at(r)].number == header.number;
    if (missing.empty() || !here || states_[at(r)] == PeerState::kGone) awaited.push_back(r);
  }
  std::optional<PeerError> verdict = absence(awaited, what);
  if (!verdict && header.overdue != 0) {
    verdict = missing.empty() && !agree(waits) ? disagreement(waits, ranks_, channel.name)
                                               : late(what, names(missing), timeout_);
  }
  if (!verdict) return;
  send_(rank, {.kind = FrameKind::kVerdict, .channel = header.channel, .number = header.number}, encode(*verdict));
}

std::string TcpMeetings::what(const Channel& channel) const {
  const auto first = std::ranges::find(channel.arrived, true);
  return describe(channel.operations[static_cast<std::size_t>(first - channel.arrived.begin())], channel.name);
}

std::string TcpMeetings::names(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_[at(rank)];
  return text;
}

std::vector<int> TcpMeetings::not_in(const std::vector<bool>& arrived) const {
  std::vector<int> missing;
  for (const int rank : ranks_) {
    if (!arrived[at(rank)]) missing.push_back(rank);
  }
  return missing;
}

std::optional<PeerError> TcpMeetings::absence(const std::vector<int>& ranks, const std::string& what) const {
  const auto is_awaited = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
  const auto first = std::ranges::find_if(lost_, is_awaited);
  if (first == lost_.end()) return std::nullopt;
  const PeerState state = states_[at(*first)];
  std::vector<int> alike;
  std::ranges::copy_if(ranks, std::back_inserter(alike), [&](int rank) { return states_[at(rank)] == state; });
  return absent(what, names(alike), state);
}

}  // namespace lockstep::comm
