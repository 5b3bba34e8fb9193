// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "comm/group/reduction.h"

namespace lockstep::comm {

namespace {

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

Payload concatenated(const std::vector<Payload>& parts) {
  auto whole = std::make_shared<std::vector<std::byte>>();
  for (const Payload& part : parts) whole->insert(whole->end(), part->begin(), part->end());
  return whole;
}

Payload reduced(const std::vector<Operation>& operations, const std::vector<Payload>& parts) {
  std::vector<const void*> sources;
  for (const Payload& part : parts) sources.push_back(part->data());
  const Operation& operation = operations.front();
  auto result = std::make_shared<std::vector<std::byte>>(parts.front()->size());
  void* const output = result->data();
  reduce(reduction_of(operation, operations), sources, {&output, 1},
         static_cast<std::int64_t>(result->size() / size_of(operation.dtype)));
  return result;
}

}  // namespace

TcpMeetings::TcpMeetings(int size, std::chrono::milliseconds timeout, Send send)
    : timeout_(timeout), send_(std::move(send)), states_(index_of(size)) {
  std::vector<int> ranks(index_of(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  for (const int rank : ranks) names_.push_back("rank " + std::to_string(rank));
  open_channel(kFirstChannel, std::move(ranks));
}

std::int32_t TcpMeetings::open_channel(const std::string& name, std::vector<int> ranks) {
  Channel& channel = channels_[next_channel_];
  channel.name = name;
  channel.ranks = std::move(ranks);
  const std::size_t size = channel.ranks.size();
  channel.arrived.resize(size);
  channel.frames.resize(size);
  channel.operations.resize(size);
  channel.parts.assign(size, nothing_);
  channel.device_waits.resize(size);
  return next_channel_++;
}

void TcpMeetings::take(int rank, const Frame& frame) {
  if (frame.header.kind == FrameKind::kFailed) {
    return lose(rank, PeerState::kFailed, frame.payload->empty() ? nullptr : frame.payload);
  }
  const auto found = channels_.find(frame.header.channel);
  if (found == channels_.end()) return lose(rank, PeerState::kFailed);
  Channel& channel = found->second;
  const auto place = std::ranges::find(channel.ranks, rank);
  if (place == channel.ranks.end()) return lose(rank, PeerState::kFailed);
  const auto member = static_cast<std::size_t>(place - channel.ranks.begin());
  if (frame.header.kind == FrameKind::kDeviceWait) return wait_on_device(member, channel, frame.header);
  arrive(member, channel, found->first, frame);
}

void TcpMeetings::arrive(std::size_t member, Channel& channel, std::int32_t id, const Frame& frame) {
  if (channel.count == 0) channel.began = Clock::now();
  channel.count += channel.arrived[member] ? 0 : 1;
  channel.arrived[member] = true;
  channel.frames[member] = frame.header.kind;
  channel.operations[member] = frame.header.operation;
  channel.parts[member] = frame.payload;
  if (frame.header.operation.kind == OperationKind::kLeave) {
    ending_ = true;
    lose(channel.ranks[member], PeerState::kLeft);
  }
  if (channel.count == channel.ranks.size()) {
    finish(channel, id);
  } else {
    require_present(channel, id);
  }
}

void TcpMeetings::lose(int rank, PeerState state, Payload why) {
  // The first word is what explains the others' errors, and perhaps its own.
  if (states_[index_of(rank)] != PeerState::kRunning) return;
  states_[index_of(rank)] = state;
  lost_.push_back(rank);
  if (why) reasons_[rank] = why;
  for (auto& [id, channel] : channels_) require_present(channel, id);
  // A rank that is somewhere else learns it too, as the hub may be gone when it comes to ask.
  if (state == PeerState::kLeft || std::exchange(told_, true)) return;
  for (int other = 0; index_of(other) < states_.size(); ++other) {
    const FrameHeader news{.kind = FrameKind::kNews,
                           .number = static_cast<std::int64_t>(state),
                           .operation = {.root = rank},
                           .overdue = why ? 1u : 0u};
    if (other != rank) send_(other, news, why ? why : payload_of(names_[index_of(rank)]));
  }
}

void TcpMeetings::require_present(Channel& channel, std::int32_t id) {
  if (channel.count == 0) return;
  if (const auto error = absence(missing_from(channel), what(channel))) end_with(channel, id, *error);
}

void TcpMeetings::finish(Channel& channel, std::int32_t id) {
  if (!agree(channel.operations)) {
    return end_with(channel, id, disagreement(channel.operations, channel.ranks, channel.name));
  }
  std::vector<Payload> results;
  try {
    require_alike(channel);
    results = combine(channel);
  } catch (const std::exception& error) {
    return end_with(channel, id, PeerError(what(channel) + ": " + error.what()));
  }
  close_meeting(channel);
  for (std::size_t i = 0; i < results.size(); ++i) {
    send_(channel.ranks[i], {.kind = FrameKind::kResult, .channel = id}, results[i]);
  }
}

void TcpMeetings::require_alike(const Channel& channel) const {
  // In a broadcast only the root's part counts. The names of a new channel may differ in length.
  const OperationKind kind = channel.operations.front().kind;
  const bool free = kind == OperationKind::kBroadcast || kind == OperationKind::kNewChannel;
  for (std::size_t i = 0; i < channel.ranks.size(); ++i) {
    if (channel.frames[i] != channel.frames.front() ||
        (!free && channel.parts[i]->size() != channel.parts[0]->size())) {
      throw PeerError(names_[index_of(channel.ranks[i])] + " has sent another amount of data");
    }
  }
}

std::vector<Payload> TcpMeetings::combine(Channel& channel) {
  const Operation& operation = channel.operations.front();
  const auto to_all = [&](const Payload& result) { return std::vector<Payload>(channel.ranks.size(), result); };
  if (channel.frames.front() == FrameKind::kMeeting) {
    return to_all(payload_of(channel.operations.data(), channel.operations.size() * sizeof(Operation)));
  }
  switch (operation.kind) {
    case OperationKind::kAllReduce:
      return to_all(reduced(channel.operations, channel.parts));
    case OperationKind::kReduceScatter: {
      std::vector<Payload> results = to_all(nothing_);
      results.at(index_of(operation.root)) = reduced(channel.operations, channel.parts);
      return results;
    }
    case OperationKind::kBroadcast:
      return to_all(channel.parts.at(index_of(operation.root)));
    case OperationKind::kNewChannel:
      return open_parts(channel);
    case OperationKind::kAllGather:
    case OperationKind::kBarrier:
    case OperationKind::kAllocate:
    case OperationKind::kLeave:
    case OperationKind::kReplay:
    case OperationKind::kJoin:
    case OperationKind::kConnect:
      break;
  }
  return to_all(concatenated(channel.parts));
}

std::vector<Payload> TcpMeetings::open_parts(const Channel& channel) {
  // The new channels' ranks, by color and key; equal keys stay in order.
  std::map<std::int32_t, std::vector<std::pair<std::int32_t, std::size_t>>> colors;
  std::vector<SplitRequest> requests;
  for (std::size_t i = 0; i < channel.ranks.size(); ++i) {
    const Payload& part = channel.parts[i];
    if (part->size() < sizeof(SplitRequest))
      throw PeerError(names_[index_of(channel.ranks[i])] + " asks for no channel");
    std::memcpy(&requests.emplace_back(), part->data(), sizeof(SplitRequest));
    if (requests.back().color >= 0) colors[requests.back().color].emplace_back(requests.back().key, i);
  }
  std::vector<Payload> results(channel.ranks.size(), nothing_);
  for (auto& [color, members] : colors) {
    std::ranges::sort(members);
    std::vector<int> ranks;
    for (const auto& [key, i] : members) ranks.push_back(channel.ranks[i]);
    const Payload& first = channel.parts[members.front().second];
    const std::string name(reinterpret_cast<const char*>(first->data()) + sizeof(SplitRequest),
                           first->size() - sizeof(SplitRequest));
    std::vector<std::int32_t> answer{0};
    answer.insert(answer.end(), ranks.begin(), ranks.end());
    answer.front() = open_channel(name, std::move(ranks));
    const Payload payload = payload_of(answer.data(), answer.size() * sizeof(std::int32_t));
    for (const auto& [key, i] : members) results[i] = payload;
  }
  return results;
}

std::vector<bool> TcpMeetings::close_meeting(Channel& channel) {
  channel.count = 0;
  channel.parts.assign(channel.ranks.size(), nothing_);
  return std::exchange(channel.arrived, std::vector<bool>(channel.ranks.size()));
}

void TcpMeetings::end_with(Channel& channel, std::int32_t id, const PeerError& error) {
  const std::vector<bool> arrived = close_meeting(channel);
  const Payload text = encode(error);
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    if (arrived[i]) send_(channel.ranks[i], {.kind = FrameKind::kError, .channel = id}, text);
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
    end_with(channel, id, late(what(channel), names(missing_from(channel)), timeout_));
  }
}

void TcpMeetings::wait_on_device(std::size_t member, Channel& channel, const FrameHeader& header) {
  channel.device_waits[member] = {header.number, header.operation};
  const std::string what = fmt::format("{}, number {}", describe(header.operation, channel.name), header.number);
  std::vector<int> missing;
  std::vector<Operation> waits;
  for (std::size_t i = 0; i < channel.ranks.size(); ++i) {
    const DeviceWait& wait = channel.device_waits[i];
    if (wait.number != header.number) missing.push_back(channel.ranks[i]);
    waits.push_back(wait.operation);
  }
  // One that waits here too and then gave up is not to blame; whoever is missing is. One that is gone was killed.
  std::vector<int> awaited;
  for (std::size_t i = 0; i < channel.ranks.size(); ++i) {
    const int rank = channel.ranks[i];
    const bool here = channel.device_waits[i].number == header.number;
    if (missing.empty() || !here || states_[index_of(rank)] == PeerState::kGone) awaited.push_back(rank);
  }
  std::optional<PeerError> verdict = absence(awaited, what);
  if (!verdict && header.overdue != 0) {
    verdict = missing.empty() && !agree(waits) ? disagreement(waits, channel.ranks, channel.name)
                                               : late(what, names(missing), timeout_);
  }
  if (!verdict) return;
  send_(channel.ranks[member], {.kind = FrameKind::kVerdict, .channel = header.channel, .number = header.number},
        encode(*verdict));
}

std::string TcpMeetings::what(const Channel& channel) const {
  const auto first = std::ranges::find(channel.arrived, true);
  return describe(channel.operations[static_cast<std::size_t>(first - channel.arrived.begin())], channel.name);
}

std::string TcpMeetings::names(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_[index_of(rank)];
  return text;
}

std::vector<int> TcpMeetings::missing_from(const Channel& channel) const {
  std::vector<int> missing;
  for (std::size_t i = 0; i < channel.ranks.size(); ++i) {
    if (!channel.arrived[i]) missing.push_back(channel.ranks[i]);
  }
  return missing;
}

std::optional<PeerError> TcpMeetings::absence(const std::vector<int>& ranks, const std::string& what) const {
  const auto is_awaited = [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
  const auto first = std::ranges::find_if(lost_, is_awaited);
  if (first == lost_.end()) return std::nullopt;
  if (const auto why = reasons_.find(*first); why != reasons_.end()) return decode_error(why->second);
  const PeerState state = states_[index_of(*first)];
  std::vector<int> alike;
  std::ranges::copy_if(ranks, std::back_inserter(alike), [&](int rank) { return states_[index_of(rank)] == state; });
  return absent(what, names(alike), state);
}

}  // namespace lockstep::comm
