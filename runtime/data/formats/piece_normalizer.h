// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/data/formats/piece_model.h"

namespace lockstep::data {

/// Texts by their first bytes.
class PrefixTree {
 public:
  void add(std::string_view text, std::uint32_t value);
  /// Calls `found(length, value)` for each text that `text` begins with, the shortest first.
  template <class Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    std::uint64_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto edge = edges_.find(node << 8 | static_cast<unsigned char>(text[i]));
      if (edge == edges_.end()) return;
      node = edge->second;
      if (const auto value = values_.find(node); value != values_.end()) found(i + 1, value->second);
    }
  }
  /// The length of the longest one; 0 where it begins with none.
  std::size_t longest_prefix(std::string_view text) const;

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> edges_;  // by node << 8 | byte; the root is 0
  std::unordered_map<std::uint64_t, std::uint32_t> values_;
};

/// The bytes of the character that `text` begins with, by its first one alone; at most all of it.
std::size_t character_bytes(std::string_view text);

/// How a SentencePiece model changes a text before it cuts it.
class PieceNormalizer {
 public:
  /// `whole` are user-defined symbols, which stay as they are. Both outlive this. Throws StorageError, naming `file`,
  /// for a damaged character map.
  PieceNormalizer(const PieceModel& model, const PrefixTree& whole, const std::string& file);

  std::string apply(std::string_view text) const;

 private:
  /// What the text's beginning becomes, and its length.
  std::pair<std::string_view, std::size_t> first_of(std::string_view text) const;
  /// The length of the longest text of the character map that `text` begins with, and where its replacement begins.
  std::pair<std::size_t, std::size_t> find_mapped(std::string_view text) const;

  const PieceModel& model_;
  const PrefixTree& whole_;
  /// A double array in darts-clone's format (github.com/s-yata/darts-clone): of each node its label, whether a value
  /// belongs to it, and the distance to its children.
  std::vector<std::uint32_t> nodes_;
  std::string_view replacements_;  ///< each ends with a 0
};

}  // namespace lockstep::data
