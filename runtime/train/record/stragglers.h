// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

/// A rank that slows the others down, or one that no longer does.
struct Straggler {
  int rank = 0;
  std::string host;
  double factor = 1.0;  ///< its own time a step, by that of the other ranks' median; mean over the last kSteps
  bool ended = false;
};

/// Finds ranks that take longer than the others for what every rank does, step after step.
class Stragglers {
 public:
  /// A rank is told of when it was slow in most of so many steps, and again when it was so in few of them.
  static constexpr int kSteps = 20;
  static constexpr double kFactor = 1.3;
  /// A difference below this is the system's, not the rank's.
  static constexpr double kLeastSeconds = 1e-3;

  /// Whether a rank whose own time is `seconds` is slow beside others whose median is `others`.
  static bool is_slow(double seconds, double others) {
    return seconds >= kFactor * others && seconds - others >= kLeastSeconds;
  }

  /// `hosts`: by rank. Of fewer than two ranks none is slow.
  explicit Stragglers(std::vector<std::string> hosts) : hosts_(std::move(hosts)), ranks_(hosts_.size()) {}

  /// `seconds`: by rank, the time in a step without that in which the rank waited for others. What has changed.
  std::vector<Straggler> add(std::span<const double> seconds);

 private:
  struct Rank {
    std::uint32_t slow = 0;  ///< a bit for each of the last kSteps steps
    std::vector<double> factors = std::vector<double>(kSteps, 1.0);
    bool told = false;
  };

  std::vector<std::string> hosts_;
  std::vector<Rank> ranks_;
  std::uint64_t steps_ = 0;
};

/// "rank 3 on gpu7 is slow: 1.52 times as long a step as the other ranks' median, over 20 steps"
std::string str(const Straggler& straggler);

}  // namespace lockstep::train
