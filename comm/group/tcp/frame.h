// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/group/liveness/peer_errors.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

// The messages between ranks without MPI and the hub, in rank 0's process, once they know each other (greeting.h):
// plain bytes in the machine's order.

enum class FrameKind : std::uint32_t {
  // To the hub:
  kContribution,  ///< a rank has arrived at `operation`, with its data
  kMeeting,       ///< the same without data: the result is what each rank is about to do
  kDeviceWait,    ///< it waits there on its device; `number` is the operation's, `overdue` past the timeout
  kFailed,        ///< it makes no more calls; the payload is the encoded PeerError that says why, or empty
  // From the hub:
  kResult,   ///< of the channel's operation
  kError,    ///< instead; the payload is an encoded PeerError
  kVerdict,  ///< the same for the device's operation `number`
  kNews,     ///< rank `operation.root` was lost first; `number` is its PeerState. The payload is its name or, with
             ///< `overdue`,
             ///< the encoded PeerError that it failed with
  kAborted,  ///< the others have been told
  // Both:
  kAbort,  ///< end with exit code `number`
};

struct FrameHeader {
  FrameKind kind = FrameKind::kContribution;
  std::int32_t channel = 0;
  std::int64_t number = 0;
  Operation operation;
  std::uint32_t overdue = 0;
  std::uint64_t bytes = 0;  ///< of the payload
};
static_assert(std::is_trivially_copyable_v<FrameHeader>);

/// The request of a rank with kNewChannel; the new channel's name follows it.
struct SplitRequest {
  std::int32_t color = 0;  ///< negative: none
  std::int32_t key = 0;
};

/// A payload goes to many ranks, so it is shared.
using Payload = std::shared_ptr<const std::vector<std::byte>>;
Payload payload_of(const void* data, std::size_t bytes);
Payload payload_of(const std::string& text);
std::string text_of(const Payload& payload);

struct Frame {
  FrameHeader header;
  Payload payload;  ///< not null
};

/// Whether a header that came over the network can be worked with.
bool is_sane(const FrameHeader& header);

/// The exit code of an abort: a run that a rank gives up is not done, whatever number came.
int abort_code(const FrameHeader& header);

/// An error on its way to another rank.
Payload encode(const PeerError& error);
PeerError decode_error(const Payload& payload);

/// Puts the bytes of a connection together to frames.
class FrameReader {
 public:
  /// The next complete frame; none where it has not come yet or, once closed(), where no more can come.
  std::optional<Frame> next(const Socket& socket);
  /// Whether the connection is gone, or carries what is no frame.
  bool closed() const { return closed_; }

 private:
  bool fill(const Socket& socket, void* data, std::size_t bytes);

  FrameHeader header_;
  std::size_t have_ = 0;  ///< bytes of the frame
  std::shared_ptr<std::vector<std::byte>> payload_;
  bool closed_ = false;
};

}  // namespace lockstep::comm
