// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <vector>

namespace lockstep::comm {

/// Ranks that a hub waits for and that only callers with another job claim to be. A caller of another run finds the hub
/// of its own soon and calls no more; a rank of this run that was started with another job calls on.
class RankClaims {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::milliseconds;
  /// A claim that has lasted so long is named on both sides.
  static constexpr Time kNamed = std::chrono::seconds(1);
  /// One that has lasted so long, as have those to all ranks that are missing, is of this run. Ranks that are started
  /// one by one may come as late; two runs that both do are rare.
  static constexpr Time kDecided = std::chrono::seconds(10);
  /// A claim ends when its caller has been silent for so long.
  static constexpr Time kLapsed = std::chrono::seconds(3);

  explicit RankClaims(Time named = kNamed, Time decided = kDecided) : named_(named), decided_(decided) {}

  enum class Stage {
    kPassesBy,  ///< for all that is known
    kNamed,
    kDecided,
  };
  /// Somebody with another job calls as `rank`, one of those that are missing.
  Stage call(int rank, const std::vector<int>& missing, Clock::time_point now);
  /// Whether each of the ranks that are missing has been told that it is decided.
  bool all_told(const std::vector<int>& missing) const;

 private:
  struct Claim {
    Clock::time_point first;
    Clock::time_point last;
    bool told = false;
  };
  bool has_lasted(int rank, Time time, Clock::time_point now) const;

  Time named_;
  Time decided_;
  std::map<int, Claim> claims_;
};

}  // namespace lockstep::comm
