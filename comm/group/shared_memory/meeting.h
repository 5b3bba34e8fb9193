// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/group/liveness/peers.h"
#include "comm/group/operation.h"
#include "comm/group/shared_memory/windows.h"

namespace lockstep::comm {

/// Bytes that a rank can show to the others at one meeting.
inline constexpr std::size_t kStagingBytes = 64 * 1024;

/// Where the ranks of a node meet, in shared memory. A meeting is a barrier at which each rank tells the others what it
/// is about to do and may show them up to kStagingBytes of data.
///
/// Everything a rank shows has two slots, used in turn, so one barrier per meeting is enough: a rank can only fill a
/// slot again at the meeting after next, and nobody arrives at the next one while still reading.
class SharedMeeting {
 public:
  /// One rank's part of the memory. Fresh shared memory is zeroed, which is a block that nobody has arrived at.
  struct Block {
    /// A rank arrives by writing the meeting's number behind its operation: one cache line tells all.
    struct alignas(64) Arrival {
      SharedWord number;
      Operation operation;
    };
    Arrival arrivals[2];
    alignas(64) SharedWord sleepers;  ///< how many wait in the kernel for this rank
    alignas(64) std::byte staging[2][kStagingBytes];
  };

  /// `window`: parts of at least sizeof(Block), of this group's ranks in the node and no other's.
  SharedMeeting(std::shared_ptr<SharedWindow> window, const Topology& topology, Peers& peers, std::string channel,
                std::chrono::milliseconds timeout);

  /// Waits for every rank of the node and returns what each is about to do, by local rank. Throws PeerError when one
  /// is late, gone, or does something else.
  const std::vector<Operation>& meet(const Operation& mine);

  /// The bytes that a local rank shows at the next meeting.
  std::byte* staging_to_come(int local_rank) { return block(local_rank).staging[(number_ + 1) % 2]; }
  /// The bytes that a local rank shows at the last meeting, after meet().
  std::byte* staging(int local_rank) { return block(local_rank).staging[number_ % 2]; }

 private:
  Block& block(int local_rank) const { return *blocks_[static_cast<std::size_t>(local_rank)]; }
  bool arrived(int local_rank) const;
  void arrive(const Operation& mine);
  void wait_for(int local_rank, const Operation& mine);
  void sleep_until_arrival(int local_rank, const Operation& mine);
  std::vector<int> missing() const;

  int size() const { return static_cast<int>(blocks_.size()); }

  std::shared_ptr<SharedWindow> window_;
  int rank_;  // in the node
  bool spare_cores_;
  Peers& peers_;
  std::string channel_;
  std::chrono::milliseconds timeout_;
  std::vector<Block*> blocks_;
  std::vector<Operation> operations_;
  std::uint32_t number_ = 0;
};

}  // namespace lockstep::comm
