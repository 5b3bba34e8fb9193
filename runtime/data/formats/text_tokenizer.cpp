// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/text_tokenizer.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {

namespace {

/// Most pieces of a text come again and again; those of the start are kept.
class KeptPieces {
 public:
  explicit KeptPieces(const WordModel& model) : model_(model) {}

  void append(std::string_view piece, std::vector<std::uint32_t>& tokens) {
    const std::size_t first = tokens.size();
    if (const auto found = places_.find(piece); found != places_.end()) {
      const auto [from, count] = found->second;
      for (std::size_t i = 0; i < count; ++i) tokens.push_back(tokens[from + i]);
      return;
    }
    model_.append(piece, tokens);
    if (piece.size() > kLongest || places_.size() >= kMost) return;
    places_.emplace(piece, std::pair{first, tokens.size() - first});
  }

 private:
  static constexpr std::size_t kMost = 1 << 16;
  static constexpr std::size_t kLongest = 64;

  const WordModel& model_;
  /// Where in the text's tokens those of a piece stand, and how many they are.
  std::unordered_map<std::string, std::pair<std::size_t, std::size_t>, TextHash, std::equal_to<>> places_;
};

}  // namespace

TextTokenizer::TextTokenizer(Parts parts) : parts_(std::move(parts)) {
  for (const auto& [token, text] : parts_.texts) vocabulary_ = std::max(vocabulary_, std::int64_t{token} + 1);
}

std::vector<std::uint32_t> TextTokenizer::encode(std::string_view text) const {
  std::vector<std::uint32_t> tokens = parts_.before;
  KeptPieces pieces(*parts_.model);
  const auto take = [&](std::uint32_t token) { tokens.push_back(token); };
  const auto encode_piece = [&](std::string_view piece) { pieces.append(piece, tokens); };
  parts_.raw.cut(
      text,
      [&](std::string_view between) {
        const bool leads = between.data() == text.data();
        std::string changed;
        if (!parts_.normalizer.changes_nothing()) {
          changed = parts_.normalizer.apply(between);
          between = changed;
        }
        const char* const begin = between.data();
        const auto cut = [&](std::string_view rest) {
          parts_.pre_tokenizer.cut(rest, leads && rest.data() == begin, encode_piece);
        };
        parts_.normalized.cut(between, cut, take);
      },
      take);
  tokens.insert(tokens.end(), parts_.behind.begin(), parts_.behind.end());
  return tokens;
}

std::string TextTokenizer::text_of(std::uint32_t token) const {
  const auto found = parts_.texts.find(token);
  return found == parts_.texts.end() ? std::string() : found->second;
}

}  // namespace lockstep::data
