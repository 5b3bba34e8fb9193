// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// Takes the connections of probes of other hosts, at a free port of all networks, from threads of its own.
class ProbeTarget {
 public:
  ProbeTarget();
  ~ProbeTarget();
  ProbeTarget(const ProbeTarget&) = delete;
  ProbeTarget& operator=(const ProbeTarget&) = delete;

  std::uint16_t port() const;
  /// By which a probe knows this target: the same address and port may be another host's.
  std::uint64_t id() const;

 private:
  class Threads;
  std::unique_ptr<Threads> threads_;
};

/// Where a probe looks for a target.
struct ProbeAddress {
  std::string address;
  std::uint16_t port = 0;
  std::uint64_t id = 0;
};

/// Why a target is not reached there within 2 s, to which the search of its name may add; empty where it is.
std::string unreachable(const ProbeAddress& target);

/// A connection between two hosts, measured.
struct LinkSpeed {
  std::string reason;     ///< why it could not be; the rest means nothing then
  double latency_us = 0;  ///< half of the median time to there and back
  double mbit_per_s = 0;
  int mtu = 0;  ///< of the path, as far as the system knows it
};

/// Takes 2 s at most, and about 0.3 s where all is well.
LinkSpeed measure(const ProbeAddress& target);

}  // namespace lockstep::launcher
