// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/byte_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/formats/characters.h"

namespace lockstep::data {

BytePairs::BytePairs(TokenNumbers numbers, PairMerges merges, const BytePairsRules& rules)
    : numbers_(std::move(numbers)), merges_(std::move(merges)), rules_(rules) {
  if (!rules.byte_level && !rules.byte_fallback) return;
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const std::string text =
        rules.byte_level ? std::string(1, static_cast<char>(byte)) : fmt::format("<0x{:02X}>", byte);
    if (const auto found = numbers_.find(text); found != numbers_.end()) bytes_[byte] = found->second;
  }
}

void BytePairs::append(std::string_view word, std::vector<std::uint32_t>& tokens) const {
  if (rules_.whole_words) {
    if (const auto found = numbers_.find(word); found != numbers_.end()) {
      tokens.push_back(found->second);
      return;
    }
  }
  const std::size_t first = tokens.size();
  if (rules_.byte_level) {
    append_bytes(word, tokens);
  } else {
    append_characters(word, tokens);
  }
  merges_.join(tokens, first);
}

void BytePairs::append_characters(std::string_view word, std::vector<std::uint32_t>& tokens) const {
  // As in Hugging Face's library an unknown character waits for the next one that is a token of its own, over those
  // that become bytes.
  bool waiting = false;
  const auto end_unknown = [&] {
    if (waiting) tokens.push_back(*rules_.unknown);
    waiting = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = character_at(word, at).text;
    at += character.size();
    if (const auto found = numbers_.find(character); found != numbers_.end()) {
      end_unknown();
      tokens.push_back(found->second);
    } else if (!rules_.byte_fallback || !append_bytes(character, tokens)) {
      if (!rules_.unknown) {
        throw StorageError(
            fmt::format("the tokenizer has no token for the character U+{:04X}, and none for unknown ones",
                        character_at(character, 0).code),
            "Take the character out of the text, or take a tokenizer that knows it.");
      }
      if (!rules_.fuse_unknown) end_unknown();
      waiting = true;
    }
  }
  end_unknown();
}

bool BytePairs::append_bytes(std::string_view character, std::vector<std::uint32_t>& tokens) const {
  const auto token_of = [this](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (!std::ranges::all_of(character, [&](char byte) { return token_of(byte).has_value(); })) return false;
  for (const char byte : character) tokens.push_back(*token_of(byte));
  return true;
}

}  // namespace lockstep::data
