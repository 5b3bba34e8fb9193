// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace lockstep::train {

namespace {

/// So many slow steps of kSteps make a rank a straggler; with so few it is none any more.
constexpr int kMany = 15;
constexpr int kFewRanks = 5;
constexpr std::uint32_t kWindow = (std::uint32_t{1} << Stragglers::kSteps) - 1;

/// The median of `sorted` without its element `at`; the lower one of two.
double median_without(const std::vector<double>& sorted, std::size_t at) {
  const std::size_t middle = (sorted.size() - 2) / 2;
  return sorted[middle < at ? middle : middle + 1];
}

}  // namespace

std::vector<Straggler> Stragglers::add(std::span<const double> seconds) {
  std::vector<Straggler> changes;
  if (ranks_.size() < 2 || seconds.size() != ranks_.size()) return changes;
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::sort(sorted);
  const auto slot = static_cast<std::size_t>(steps_++ % kSteps);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(sorted, seconds[r]) - sorted.begin());
    const double others = median_without(sorted, at);
    const bool slow = is_slow(seconds[r], others);
    rank.slow = ((rank.slow << 1) | (slow ? 1u : 0u)) & kWindow;
    rank.factors[slot] = seconds[r] / std::max(others, kLeastSeconds);
    const int count = std::popcount(rank.slow);
    if (steps_ < kSteps || (rank.told ? count > kFewRanks : count < kMany)) continue;
    rank.told = !rank.told;
    const double factor = std::accumulate(rank.factors.begin(), rank.factors.end(), 0.0) / kSteps;
    changes.push_back({static_cast<int>(r), hosts_[r], factor, !rank.told});
  }
  return changes;
}

std::string str(const Straggler& straggler) {
  return fmt::format("rank {} on {} is {}: {:.2f} times as long a step as the other ranks' median, over {} steps",
                     straggler.rank, straggler.host, straggler.ended ? "no longer slow" : "slow", straggler.factor,
                     Stragglers::kSteps);
}

}  // namespace lockstep::train
