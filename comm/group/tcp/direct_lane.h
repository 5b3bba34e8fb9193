// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/group/tcp/receive_window.h"
#include "comm/group/tcp/socket.h"

namespace lockstep::comm {

enum class PieceKind : std::uint32_t {
  kContribution,  ///< to the receiver's share
  kResult,        ///< of the sender's share
  kAlive,         ///< nothing yet: the sender waits for others
};

/// Goes before each piece of a buffer between two ranks: plain bytes in the machine's order.
struct PieceHeader {
  std::uint64_t exchange = 0;  ///< the number of the channel's exchange
  PieceKind kind = PieceKind::kAlive;
  std::uint32_t piece = 0;
  std::uint64_t bytes = 0;  ///< that follow
  bool operator==(const PieceHeader&) const = default;
};
static_assert(std::is_trivially_copyable_v<PieceHeader> && std::has_unique_object_representations_v<PieceHeader>);

/// One direct connection as a row of pieces in both directions. Never waits. Payloads go from and to the user's memory,
/// without a copy here.
class DirectLane {
 public:
  /// One of the `connections` of a rank to `others`.
  DirectLane(Socket socket, std::size_t connections, std::size_t others)
      : socket_(std::move(socket)), window_(socket_, connections, others) {}

  const Socket& connection() const { return socket_; }
  /// The connection has ended.
  bool broken() const { return broken_; }

  /// Whether the last call ended because the socket had nothing more to give, or no room; poll() says when to go on.
  bool awaits_bytes() const { return awaits_bytes_; }
  bool awaits_room() const { return awaits_room_; }
  void ready_to_receive() { awaits_bytes_ = false; }
  void ready_to_send() { awaits_room_ = false; }

  /// The header of the piece that comes; null where it has not come yet.
  const PieceHeader* incoming();
  /// Receives the payload of that piece; true once it is complete and the next header may come.
  bool receive(std::byte* payload);

  /// Whether there is nothing to send.
  bool idle() const { return outgoing_bytes() == sent_; }
  /// Sends this when idle(); `payload` has header.bytes and stays as it is until then.
  void post(const PieceHeader& header, const std::byte* payload);
  /// Sends what there is room for.
  void send();

  /// Bytes that have come and gone so far. Those that have come show that the other rank lives; its system takes some.
  std::uint64_t heard() const { return heard_; }
  std::uint64_t said() const { return said_; }

  /// Before the first and after the last piece of an exchange, which took so long.
  void begin_exchange();
  void end_exchange(std::chrono::nanoseconds took);

 private:
  std::size_t outgoing_bytes() const { return posted_ ? sizeof outgoing_ + outgoing_.bytes : 0; }
  /// Counts what a call has moved; false where it has not moved anything.
  bool count(std::ptrdiff_t moved, std::size_t& done, std::uint64_t& all, bool& awaits);

  Socket socket_;
  ReceiveWindow window_;
  PieceHeader incoming_;
  std::size_t received_ = 0;  ///< bytes of the header and the payload
  PieceHeader outgoing_;
  const std::byte* payload_ = nullptr;
  bool posted_ = false;
  std::size_t sent_ = 0;
  bool awaits_bytes_ = false;
  bool awaits_room_ = false;
  bool broken_ = false;
  std::uint64_t heard_ = 0;
  std::uint64_t said_ = 0;
  std::uint64_t heard_before_ = 0;  ///< bytes that came before this exchange
};

}  // namespace lockstep::comm
