// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace lockstep::kernels {

/// A candidate replaces a better ranked one only below this share of that one's time: a smaller gain is noise.
constexpr float kGain = 0.97f;

/// The number of the candidate to take, from the time of each, in the order of a library's ranking. A candidate that
/// does not run has no time. Returns nothing where none runs.
inline std::optional<std::size_t> fastest(std::span<const std::optional<float>> times) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] && (!best || *times[i] < kGain * *times[*best])) best = i;
  }
  return best;
}

/// Puts `chosen` before the ranked candidates, which keep their order, and removes one that is `same(it, chosen)`.
template <class Candidate, class Same>
void put_first(std::vector<Candidate>& ranked, Candidate chosen, Same same) {
  std::erase_if(ranked, [&](const Candidate& each) { return same(each, chosen); });
  ranked.insert(ranked.begin(), std::move(chosen));
}

}  // namespace lockstep::kernels
