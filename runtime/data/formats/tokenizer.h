// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// Text to the numbers of tokens, and back. Functions may be called from several threads at once.
class AnyTokenizer {
 public:
  virtual ~AnyTokenizer() = default;

  /// The highest token + 1.
  virtual std::int64_t vocabulary() const = 0;
  /// The tokens of a text, with those that the tokenizer puts before and behind each text. The text has to be UTF-8
  /// (find_invalid_utf8() of pre_tokens.h). Throws StorageError for a character that no token stands for.
  virtual std::vector<std::uint32_t> encode(std::string_view text) const = 0;
  /// The bytes of a token within a text; they may be a part of a character. Empty for a token that the vocabulary does
  /// not have.
  virtual std::string text_of(std::uint32_t token) const = 0;
};

/// A file of a tokenizer, in memory, so that a run can carry it.
struct TokenizerFile {
  std::string name;  ///< a path or a file's name, for errors; its ending tells the format
  std::string content;

  bool operator==(const TokenizerFile&) const = default;
};

}  // namespace lockstep::data
