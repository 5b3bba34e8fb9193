// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

namespace lockstep::comm {

/// Which ranks hold the same value.
struct Holders {
  /// The ranks of each value, ascending: first those of the value that most ranks hold, then by the first rank.
  std::vector<std::vector<int>> groups;

  bool agree() const { return groups.size() == 1; }
  /// Whether one value has more ranks than each other one, so that it is known which ranks are odd. Of two ranks that
  /// differ it is not.
  bool has_majority() const { return agree() || groups[0].size() > groups[1].size(); }
  /// The ranks that hold another value than most do.
  std::vector<int> odd() const {
    std::vector<int> ranks;
    for (std::size_t i = 1; i < groups.size(); ++i) ranks.insert(ranks.end(), groups[i].begin(), groups[i].end());
    std::ranges::sort(ranks);
    return ranks;
  }
};

/// `values`: one of each rank, in the order of the ranks; at least one.
template <class T>
Holders holders_of(const std::vector<T>& values) {
  Holders holders;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    const auto holds_it = [&](const auto& group) {
      return values[static_cast<std::size_t>(group.front())] == values[rank];
    };
    const auto group = std::ranges::find_if(holders.groups, holds_it);
    auto& ranks = group == holders.groups.end() ? holders.groups.emplace_back() : *group;
    ranks.push_back(static_cast<int>(rank));
  }
  std::ranges::stable_sort(holders.groups, std::ranges::greater(), [](const auto& ranks) { return ranks.size(); });
  return holders;
}

}  // namespace lockstep::comm
