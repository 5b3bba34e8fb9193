// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "launcher/supervisor/rank_watch.h"
#include "runtime/base/error.h"

namespace lockstep::launcher {

/// Finds what no rank can report: ranks of this machine that never join the others, as where MPI_Init hangs, and ranks
/// that are all stopped. Ranks that have their exit code are none of these.
class RankSilence {
 public:
  /// `limit`: how long a rank may be silent, and how long start-up may stand still, which is 30 s at least.
  explicit RankSilence(std::chrono::milliseconds limit) : limit_(limit) {}

  /// To be called several times a second; `elapsed` since the last call. The first rank or ranks found, with what they
  /// lack.
  std::optional<Error> look(const RankWatch& ranks, std::chrono::milliseconds elapsed);

 private:
  struct Pulse {
    std::uint32_t beats = 0;
    std::chrono::milliseconds silent{0};
  };

  std::optional<Error> stopped(const RankWatch& ranks) const;
  std::optional<Error> not_joined(const RankWatch& ranks) const;

  std::chrono::milliseconds limit_;
  std::map<int, Pulse> pulses_;
  std::uint64_t start_up_ = 0;  ///< how far the ranks have come in it
  std::chrono::milliseconds start_up_still_{0};
};

}  // namespace lockstep::launcher
