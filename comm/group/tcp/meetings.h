// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/group/liveness/peer_errors.h"
#include "comm/group/tcp/frame.h"

namespace lockstep::comm {

/// The hub's judgement, without its connections: in each channel the ranks arrive, each with an operation and data;
/// when the last one has, everyone gets the result, or whatever keeps it from coming about. Reductions are one
/// rank_reduce over the ranks' data in their order.
class TcpMeetings {
 public:
  using Clock = std::chrono::steady_clock;
  /// Sends a frame to a rank, without waiting.
  using Send = std::function<void(int rank, const FrameHeader& header, Payload payload)>;

  TcpMeetings(int size, std::chrono::milliseconds timeout, Send send);

  /// "rank 1 (process 4711)", for messages.
  void name(int rank, const std::string& name) { names_[static_cast<std::size_t>(rank)] = name; }
  /// Whether a rank has come to the end of its run.
  bool ending() const { return ending_; }

  /// Whether the rank makes no more calls.
  bool has_lost(int rank) const { return states_[static_cast<std::size_t>(rank)] != PeerState::kRunning; }

  /// A frame from a rank: kContribution, kMeeting, kDeviceWait or kFailed.
  void take(int rank, const Frame& frame);
  /// The rank will make no more calls; `why`: the encoded error that it failed with, where another rank is the reason.
  void lose(int rank, PeerState state, Payload why = nullptr);

  /// When expire() has something to do next.
  Clock::time_point next_deadline() const;
  /// Tells those that have waited for the timeout whom they wait for.
  void expire(Clock::time_point now);

 private:
  struct DeviceWait {
    std::int64_t number = -1;
    Operation operation;
  };
  /// Everything by place in the channel.
  struct Channel {
    std::string name;
    std::vector<int> ranks;  ///< of the job
    std::vector<bool> arrived;
    std::vector<FrameKind> frames;
    std::vector<Operation> operations;
    std::vector<Payload> parts;
    std::size_t count = 0;  ///< of the ranks that have arrived
    Clock::time_point began;
    std::vector<DeviceWait> device_waits;
  };

  std::int32_t open_channel(const std::string& name, std::vector<int> ranks);
  void arrive(std::size_t member, Channel& channel, std::int32_t id, const Frame& frame);
  void wait_on_device(std::size_t member, Channel& channel, const FrameHeader& header);
  /// Ends the meeting with an error where a rank that has not arrived never will.
  void require_present(Channel& channel, std::int32_t id);
  void finish(Channel& channel, std::int32_t id);
  /// Throws PeerError where one rank has sent more than another, or something else.
  void require_alike(const Channel& channel) const;
  /// Each rank's result.
  std::vector<Payload> combine(Channel& channel);
  /// Opens the channels that the ranks of one ask for. A rank's result is the new one's id and ranks, or nothing.
  std::vector<Payload> open_parts(const Channel& channel);
  /// Makes the channel ready for the next operation; returns who had arrived.
  std::vector<bool> close_meeting(Channel& channel);
  void end_with(Channel& channel, std::int32_t id, const PeerError& error);
  std::string what(const Channel& channel) const;
  std::string names(const std::vector<int>& ranks) const;
  std::vector<int> missing_from(const Channel& channel) const;
  /// The error for those of `ranks` that will never come, by what became of the first; none where all may.
  std::optional<PeerError> absence(const std::vector<int>& ranks, const std::string& what) const;

  std::chrono::milliseconds timeout_;
  Send send_;
  Payload nothing_ = payload_of("");
  std::vector<std::string> names_;
  std::vector<PeerState> states_;
  std::map<int, Payload> reasons_;  ///< of ranks that failed by others
  std::map<std::int32_t, Channel> channels_;
  std::int32_t next_channel_ = 0;
  bool ending_ = false;
  std::vector<int> lost_;  ///< the ranks that are not running, the first one first: it explains the others
  bool told_ = false;      ///< the ranks know of the first one
};

}  // namespace lockstep::comm
