// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/tensor/dtype.h"

namespace lockstep::comm {

/// How many ranks there are, and how many a host has: every host as many.
struct RankLayout {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_host = 1;  ///< 1 to `ranks`, which it divides

  std::int64_t hosts() const { return ranks / ranks_per_host; }
  bool operator==(const RankLayout&) const = default;
};

/// How fast the CPUs of ranks reach each other.
struct RankLinks {
  enum class Between { kMpi, kTcp };
  Between hosts = Between::kMpi;  ///< what carries messages between hosts
  double host_alpha_us = 0;       ///< an all_reduce of one number between the ranks of a host
  double host_gb_per_s = 0;       ///< > 0: 10^9 bytes of a longer buffer a second, beyond that
  double network_gbps = 0;        ///< > 0: 10^9 bits of data a second that a host sends while it receives as many
  double latency_us = 0;          ///< of a message between two hosts, one way
  /// Where a rank reduces on the cores that it computes on: 10^9 bytes a second that a copy reads and writes.
  /// Without it, cores that do nothing else reduce.
  std::optional<double> copy_gb_per_s = {};
};

/// The time of a collective: that in which its channel waits, and that in which it has the hosts' links for itself; and
/// how much of it the cores cannot compute.
struct CollectiveCost {
  double channel_us = 0;
  double link_us = 0;
  double core_us = 0;

  double total_us() const { return channel_us + link_us; }
};

// The times of the Communicator's collectives of the CPU, from what its algorithms send. Within a host each rank adds
// up its slice in shared memory. Between hosts the ranks meet, all of them; then a host sends and receives 2 (hosts -
// 1) / hosts of the buffer: its part of the others' sums and its own sum. Where a host has several ranks, a 16-bit sum
// travels in float32. What is small goes through rank 0 over TCP, in one way there and back.

/// The bytes that a host sends in an all_reduce of `elements`, without those of the meeting; 0 on one host.
double all_reduce_link_bytes(const RankLayout& layout, std::int64_t elements, DType dtype);
CollectiveCost all_reduce_cost(const RankLayout& layout, const RankLinks& links, std::int64_t elements, DType dtype);
/// `bytes` of each rank.
CollectiveCost all_gather_cost(const RankLayout& layout, const RankLinks& links, std::int64_t bytes);

}  // namespace lockstep::comm
