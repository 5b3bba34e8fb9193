// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

#include "runtime/data/formats/pair_merges.h"
#include "runtime/data/formats/word_model.h"

namespace lockstep::data {

struct BytePairsRules {
  bool byte_level = false;     ///< bytes are the first tokens; else characters are
  bool whole_words = false;    ///< a word that is a token is that token, whatever the merges give
  bool byte_fallback = false;  ///< a character that is no token becomes the tokens "<0x00>" ... of its bytes
  std::optional<std::uint32_t> unknown = {};  ///< stands for any other character that is no token
  bool fuse_unknown = false;                  ///< one for neighbouring ones
};

/// Byte-pair encoding: the bytes or characters of a word are its first tokens, of which pairs join.
class BytePairs : public WordModel {
 public:
  /// `numbers` by the tokens' texts; of byte_level by their bytes, and each byte has one.
  BytePairs(TokenNumbers numbers, PairMerges merges, const BytePairsRules& rules);

  void append(std::string_view word, std::vector<std::uint32_t>& tokens) const override;

 private:
  void append_characters(std::string_view word, std::vector<std::uint32_t>& tokens) const;
  /// Whether the bytes of a character have tokens, which are then appended.
  bool append_bytes(std::string_view character, std::vector<std::uint32_t>& tokens) const;

  TokenNumbers numbers_;
  PairMerges merges_;
  BytePairsRules rules_;
  std::array<std::optional<std::uint32_t>, 256> bytes_;  ///< of byte_level and byte_fallback
};

}  // namespace lockstep::data
