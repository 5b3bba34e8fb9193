// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/group/tcp/direct_lane.h"
#include "comm/group/tcp/direct_mesh.h"

namespace lockstep::comm {

/// The buffers of an exchange. Every rank owns a share of them: it makes its pieces from contributions and passes them
/// on.
struct DirectFlow {
  struct Share {
    std::int64_t begin;
    std::int64_t bytes;
  };
  std::vector<Share> shares;      ///< by place: rank r's begins at `begin` of both buffers
  const std::byte* in = nullptr;  ///< contributions to all shares; may be `out`
  std::byte* out = nullptr;       ///< results of all shares
  std::vector<bool> contributes;  ///< whether a rank has a contribution to each share
  std::vector<bool> receives;     ///< whether a rank gets the results of the others
  std::int64_t piece_bytes = 0;   ///< at most; the same on every rank
  /// Makes `bytes` of the own share, from `offset` of it on, out of one source a rank: null for one that does not
  /// contribute. Not called where no other rank contributes: the result is there.
  std::function<void(std::span<const std::byte* const> sources, std::int64_t offset, std::int64_t bytes)> combine;

  /// A size of pieces for shares of up to so many bytes.
  static std::int64_t piece_for(std::int64_t share_bytes);
};

/// Runs the exchanges of a channel over its direct connections, in the calling thread, one after the other. Every rank
/// makes the same ones. Holds up to kWindow pieces of each other rank.
class DirectExchange {
 public:
  /// A rank that is ahead of the others by so many pieces has to wait. Fewer would hold up ranks whose bytes come in
  /// bursts.
  static constexpr std::int64_t kWindow = 16;

  /// `link` knows who is lost. A rank that owes something and is silent for `timeout` is late.
  DirectExchange(DirectMesh mesh, TcpLink& link, std::chrono::milliseconds timeout);

  /// Throws PeerError for ranks that are lost, late, or send what does not fit; then no exchange may follow.
  void run(const DirectFlow& flow, const std::string& what);

 private:
  using Clock = Socket::Clock;
  /// A connection and what is still to go and to come on it: of each kind the pieces that are its own, in order.
  struct Lane {
    DirectLane pieces;
    int place;  ///< of the other rank
    struct Row {
      std::int64_t next = 0;
      std::int64_t end = 0;
      std::int64_t step = 1;  ///< the number of connections to that rank
      bool done() const { return next >= end; }
      void advance() { next += step; }
    };
    Row contributions_out{}, results_out{}, contributions_in{}, results_in{};
    bool full = false;        ///< the next contribution has to wait for the window
    std::uint64_t heard = 0;  ///< bytes, when last looked at
    std::uint64_t said = 0;
    Clock::time_point hearing{};  ///< when they last changed
    Clock::time_point saying{};

    bool owed() const { return !contributions_in.done() || !results_in.done(); }
    bool owes() const { return !contributions_out.done() || !results_out.done() || !pieces.idle(); }
  };

  void begin(Clock::time_point now);
  std::int64_t pieces_of(int place) const;
  std::int64_t bytes_of(int place, std::int64_t piece) const;
  std::byte* staging(int place, std::int64_t piece);
  bool finished() const;
  void receive(Lane& lane);
  /// Where the piece goes; null while it has to wait. Throws where it is not the one that comes next.
  std::byte* place_for(Lane& lane, const PieceHeader& header);
  void take(Lane& lane, const PieceHeader& header);
  void combine_complete();
  void send(Lane& lane);
  bool post_next(Lane& lane);
  /// Tells those who wait for results of this rank, which waits for others, that it lives.
  void tell_alive();
  void wait();
  /// Throws where a rank that this one waits for is lost or late.
  void require_progress();
  void require_not_late(Clock::time_point now);
  [[noreturn]] void lose(int place);
  std::string names(const std::vector<int>& places) const;

  DirectMesh mesh_;
  TcpLink& link_;
  std::chrono::milliseconds timeout_;
  std::vector<Lane> lanes_;
  std::vector<std::byte> staging_;
  std::uint64_t number_ = 0;  ///< of the exchange

  // These belong to the exchange that runs.
  const DirectFlow* flow_ = nullptr;
  std::string what_;
  std::int64_t ready_ = 0;                 ///< pieces of the own share
  int contributors_ = 0;                   ///< other ranks
  std::vector<const std::byte*> sources_;  ///< of the piece that is combined
  std::vector<int> arrived_;               ///< contributions to each piece of the window
  bool listens_ = true;                    ///< to the link
};

}  // namespace lockstep::comm
