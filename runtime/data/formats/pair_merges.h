// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

/// Which pairs of neighbouring tokens join, and in which order (Sennrich et al.: "Neural machine translation of rare
/// words with subword units", 2016).
class PairMerges {
 public:
  /// `left` and `right` become `token`. Pairs of a lower rank join first; of two merges of one pair the last one
  /// counts.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t token);

  /// Joins the tokens from place `first` on until no two neighbours join, the lowest rank first, then the leftmost.
  /// Takes n log n time for n tokens.
  void join(std::vector<std::uint32_t>& tokens, std::size_t first) const;

 private:
  struct Merge {
    std::uint32_t rank;
    std::uint32_t token;
  };
  const Merge* find(std::uint32_t left, std::uint32_t right) const;

  std::unordered_map<std::uint64_t, Merge> merges_;  // by left << 32 | right
};

}  // namespace lockstep::data
