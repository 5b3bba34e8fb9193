// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/piece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "runtime/data/formats/piece_model.h"
#include "runtime/data/formats/piece_normalizer.h"
#include "runtime/data/formats/word_model.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kMarkOfSpace = "\u2581";

/// A part of the normalised text and its token.
struct Part {
  std::string_view text;
  std::uint32_t token;
};

class PieceTokenizer : public AnyTokenizer {
 public:
  PieceTokenizer(PieceModel model, const std::string& file)
      : model_(std::move(model)), normalizer_(model_, whole_, file) {
    for (std::uint32_t i = 0; i < model_.pieces.size(); ++i) add(model_.pieces[i], i);
  }
  PieceTokenizer(const PieceTokenizer&) = delete;  // the normaliser refers to its neighbours
  PieceTokenizer& operator=(const PieceTokenizer&) = delete;

  std::int64_t vocabulary() const override { return std::ssize(model_.pieces); }

  std::vector<std::uint32_t> encode(std::string_view text) const override {
    const std::string normalized = normalizer_.apply(text);
    const bool unigram = model_.kind == PieceModel::Kind::kUnigram;
    std::vector<std::uint32_t> tokens;
    bool was_unknown = false;
    for (const Part& part : unigram ? best_path(normalized) : joined(normalized)) {
      const bool unknown = part.token == model_.unknown;
      if (unknown && model_.byte_fallback) {
        for (const char byte : part.text) tokens.push_back(bytes_[static_cast<unsigned char>(byte)]);
      } else if (!unknown || !was_unknown) {  // one token for several unknown ones in a row
        tokens.push_back(part.token);
      }
      was_unknown = unknown;
    }
    return tokens;
  }

  std::string text_of(std::uint32_t token) const override {
    if (token >= model_.pieces.size()) return {};
    const PieceModel::Piece& piece = model_.pieces[token];
    if (piece.type == Type::kControl) return {};
    if (piece.type == Type::kUnknown) return model_.unknown_text;
    if (piece.type == Type::kByte)
      return std::string(1, static_cast<char>(std::ranges::find(bytes_, token) - bytes_.begin()));
    std::string text;
    for (std::string_view rest = piece.text; !rest.empty();) {
      const bool space = rest.starts_with(kMarkOfSpace);
      text += space ? ' ' : rest[0];
      rest.remove_prefix(space ? kMarkOfSpace.size() : 1);
    }
    return text;
  }

 private:
  using Type = PieceModel::Type;

  void add(const PieceModel::Piece& piece, std::uint32_t number) {
    numbers_.emplace(piece.text, number);
    if (piece.type == Type::kByte) {
      unsigned byte = 0;
      std::from_chars(piece.text.data() + 3, piece.text.data() + 5, byte, 16);
      bytes_[byte] = number;
    }
    const bool in_texts =
        piece.type == Type::kNormal || piece.type == Type::kUserDefined || piece.type == Type::kUnused;
    if (in_texts) tree_.add(piece.text, number);
    if (in_texts) in_texts_.emplace(piece.text, number);
    if (piece.type == Type::kUserDefined) whole_.add(piece.text, number);
    if (piece.type != Type::kNormal) return;
    least_score_ = std::min(least_score_, piece.score);
    most_score_ = std::max(most_score_, piece.score);
  }

  /// Cuts the text so that the sum of the scores is the largest (Viterbi); of equal sums the one whose last part is the
  /// longest. Sums are rounded as the library's version 0.2.3 rounds them, so that close ones decide alike: in float32,
  /// and where one has grown large, those that are needed from there on are counted from it.
  std::vector<Part> best_path(std::string_view text) const {
    constexpr float kUnknownPenalty = 10, kLargeScore = 100'000;
    constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
    struct End {
      std::uint32_t token = 0;
      float score = 0;  ///< of the best path that ends here
      std::size_t begin = kNowhere;
    };
    std::vector<End> ends(text.size() + 1);
    const float unknown_score = least_score_ - kUnknownPenalty;
    std::size_t reached = 0;  // the last place where a path ends
    for (std::size_t begin = 0; begin < text.size();) {
      if (const float large = ends[begin].score; std::abs(large) > kLargeScore) {
        for (std::size_t i = begin; i <= reached; ++i) ends[i].score -= large;
      }
      const float score_here = ends[begin].score;
      const std::size_t character = character_bytes(text.substr(begin));
      bool has_character = false;
      const auto offer = [&](std::size_t length, std::uint32_t token, float own_score) {
        End& end = ends[begin + length];
        const float score = own_score + score_here;
        reached = std::max(reached, begin + length);
        if (end.begin == kNowhere || score > end.score) end = {token, score, begin};
      };
      tree_.for_each_prefix(text.substr(begin), [&](std::size_t length, std::uint32_t token) {
        const PieceModel::Piece& piece = model_.pieces[token];
        if (piece.type == Type::kUnused) return;
        // The user's own symbols always win.
        offer(length, token,
              piece.type == Type::kUserDefined ? static_cast<float>(length) * most_score_ - 0.1f : piece.score);
        has_character = has_character || length == character;
      });
      if (!has_character) offer(character, model_.unknown, unknown_score);
      begin += character;
    }
    std::vector<Part> parts;
    for (std::size_t end = text.size(); end > 0; end = ends[end].begin) {
      parts.push_back({text.substr(ends[end].begin, end - ends[end].begin), ends[end].token});
    }
    std::ranges::reverse(parts);
    return parts;
  }

  /// Joins neighbours whose text together is a piece, the highest score first, then the leftmost.
  std::vector<Part> joined(std::string_view text) const {
    constexpr std::size_t kNoSymbol = std::numeric_limits<std::size_t>::max();
    struct Symbol {
      std::string_view text;  ///< empty where it joined the one before it
      std::size_t previous;
      std::size_t next;
      bool whole;  ///< the user's own, which joins none
    };
    struct Neighbours {
      float score;
      std::size_t left;
      std::size_t right;
      std::size_t bytes;
      bool operator<(const Neighbours& other) const {
        return score < other.score || (score == other.score && left > other.left);
      }
    };
    std::vector<Symbol> symbols;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t whole = whole_.longest_prefix(text.substr(at));
      const std::size_t length = whole > 0 ? whole : character_bytes(text.substr(at));
      const std::size_t place = symbols.size();
      symbols.push_back({text.substr(at, length), place == 0 ? kNoSymbol : place - 1, place + 1, whole > 0});
      at += length;
    }
    if (symbols.empty()) return {};
    symbols.back().next = kNoSymbol;
    std::priority_queue<Neighbours> pairs;
    Halves halves;
    const auto offer = [&](std::size_t left, std::size_t right) {
      if (left == kNoSymbol || right == kNoSymbol || symbols[left].whole || symbols[right].whole) return;
      const std::string_view both(symbols[left].text.data(), symbols[left].text.size() + symbols[right].text.size());
      const auto found = in_texts_.find(both);
      if (found == in_texts_.end()) return;
      const PieceModel::Piece& piece = model_.pieces[found->second];
      pairs.push({piece.score, left, right, both.size()});
      if (piece.type == Type::kUnused) halves[both] = {symbols[left].text, symbols[right].text};
    };
    for (std::size_t i = 1; i < symbols.size(); ++i) offer(i - 1, i);
    while (!pairs.empty()) {
      const Neighbours pair = pairs.top();
      pairs.pop();
      Symbol& left = symbols[pair.left];
      Symbol& right = symbols[pair.right];
      if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != pair.bytes) continue;
      left.text = {left.text.data(), pair.bytes};
      left.next = right.next;
      if (right.next != kNoSymbol) symbols[right.next].previous = pair.left;
      right.text = {};
      offer(left.previous, pair.left);
      offer(pair.left, left.next);
    }
    std::vector<Part> parts;
    for (std::size_t i = 0; i != kNoSymbol; i = symbols[i].next) append(symbols[i].text, halves, parts);
    return parts;
  }

  using Halves = std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>>;

  /// A piece that only leads to others falls into those that it was joined of.
  void append(std::string_view text, const Halves& halves, std::vector<Part>& parts) const {
    std::vector<std::string_view> left{text};
    while (!left.empty()) {
      const std::string_view next = left.back();
      left.pop_back();
      const auto found = numbers_.find(next);
      const std::uint32_t token = found == numbers_.end() ? model_.unknown : found->second;
      const auto both = model_.pieces[token].type == Type::kUnused ? halves.find(next) : halves.end();
      if (both == halves.end()) {
        parts.push_back({next, token});
        continue;
      }
      left.push_back(both->second.second);
      left.push_back(both->second.first);
    }
  }

  PieceModel model_;
  PrefixTree whole_;  ///< the user's own symbols
  PieceNormalizer normalizer_;
  TokenNumbers numbers_;   ///< of all pieces
  TokenNumbers in_texts_;  ///< of those that a text may hold
  PrefixTree tree_;        ///< of the same
  std::array<std::uint32_t, 256> bytes_{};
  float least_score_ = std::numeric_limits<float>::max();
  float most_score_ = std::numeric_limits<float>::min();
};

}  // namespace

std::unique_ptr<AnyTokenizer> read_piece_tokenizer(const TokenizerFile& file) {
  return std::make_unique<PieceTokenizer>(read_piece_model(file), file.name);
}

}  // namespace lockstep::data
