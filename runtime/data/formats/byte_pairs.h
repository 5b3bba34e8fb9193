// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

/// GPT-2's byte-level byte-pair encoding (Sennrich et al.: "Neural machine translation of rare words with subword
/// units", 2016; Radford et al., 2019): bytes are the first tokens, and pairs of neighbours join in the order of a list
/// of merges. As in the `transformers` library, "<|endoftext|>" is one token where the vocabulary has it.
class BytePairs {
 public:
  /// GPT-2's vocab.json and merges.txt. Throws StorageError that names the file and, in merges.txt, the line.
  BytePairs(const std::string& vocab_file, const std::string& merges_file);

  /// The highest token + 1.
  std::int64_t vocabulary() const { return vocabulary_; }
  /// The tokens of a text in UTF-8.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  /// The bytes of a token; empty for a token that the vocabulary does not have.
  std::string text_of(std::uint32_t token) const;

 private:
  struct Merge {
    std::uint32_t rank;  ///< the line of merges.txt that says it
    std::uint32_t token;
  };
  void append_ordinary(std::string_view text, std::vector<std::uint32_t>& tokens) const;
  void append_piece(std::string_view piece, std::vector<std::uint32_t>& tokens) const;
  const Merge* find_merge(std::uint32_t left, std::uint32_t right) const;

  std::int64_t vocabulary_ = 0;
  std::array<std::uint32_t, 256> byte_tokens_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left << 32 | right
  std::optional<std::uint32_t> end_of_text_;
  std::unordered_map<std::uint32_t, std::string> texts_;
};

}  // namespace lockstep::data
