// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/pre_tokens.h"

#include <array>
#include <limits>
#include <utility>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

namespace {

using namespace std::string_view_literals;

using Kind = CharacterKind;

/// A regular expression of a tokenizer's file, in the pieces that its code below follows.
constexpr std::array kPatterns{
    std::pair{CutPattern::kGpt2, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"sv},
    std::pair{CutPattern::kLlama3, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                                   R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv},
    std::pair{CutPattern::kQwen2, R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                  R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv}};

constexpr std::array kContractions{"s"sv, "t"sv, "re"sv, "ve"sv, "m"sv, "ll"sv, "d"sv};

bool ends_line(char c) { return c == '\r' || c == '\n'; }

Kind kind_at(std::string_view text, std::size_t at) { return character_kind(character_at(text, at).code); }

/// The end of at most `most` characters of one kind that begin at `at`. `last` becomes where the last one begins.
std::size_t end_of_run(std::string_view text, std::size_t at, Kind kind,
                       std::size_t most = std::numeric_limits<std::size_t>::max(), std::size_t* last = nullptr) {
  for (std::size_t count = 0; at < text.size() && count < most; ++count) {
    const Character next = character_at(text, at);
    if (character_kind(next.code) != kind) break;
    if (last != nullptr) *last = at;
    at += next.text.size();
  }
  return at;
}

std::size_t end_of_lines(std::string_view text, std::size_t at) {
  while (at < text.size() && ends_line(text[at])) ++at;
  return at;
}

/// The end of \s+(?!\S)|\s+: spaces before a word leave it the last one of them.
std::size_t end_of_spaces(std::string_view text, std::size_t at) {
  std::size_t last = at;
  const std::size_t end = end_of_run(text, at, Kind::kSpace, std::numeric_limits<std::size_t>::max(), &last);
  return end < text.size() && last > at ? last : end;
}

std::size_t end_of_gpt2_piece(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  for (const std::string_view contraction : kContractions) {
    if (rest.starts_with('\'') && rest.substr(1).starts_with(contraction)) return at + 1 + contraction.size();
  }
  // One space belongs to the word behind it.
  const std::size_t word = at + (rest.starts_with(' ') ? 1 : 0);
  if (word < text.size()) {
    const Kind kind = kind_at(text, word);
    if (kind != Kind::kSpace) return end_of_run(text, word, kind);
  }
  return end_of_spaces(text, at);
}

/// The end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at `at`, which is `at` where nothing of it is there.
std::size_t end_of_contraction(std::string_view text, std::size_t at) {
  constexpr std::string_view kLongS = "\u017f";  // without regard to case it is an s
  const std::string_view rest = text.substr(at);
  if (!rest.starts_with('\'')) return at;
  if (rest.substr(1).starts_with(kLongS)) return at + 1 + kLongS.size();
  for (const std::string_view contraction : kContractions) {
    bool same = rest.size() > contraction.size();
    for (std::size_t i = 0; same && i < contraction.size(); ++i) {
      const char c = rest[i + 1];
      same = (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == contraction[i];
    }
    if (same) return at + 1 + contraction.size();
  }
  return at;
}

std::size_t end_of_llama3_piece(std::string_view text, std::size_t at, std::size_t most_digits) {
  if (const std::size_t end = end_of_contraction(text, at); end > at) return end;
  const Character first = character_at(text, at);
  const Kind kind = character_kind(first.code);
  if (kind == Kind::kLetter) return end_of_run(text, at, kind);
  if (kind == Kind::kNumber) return end_of_run(text, at, kind, most_digits);
  // One character of any kind but a line's end belongs to the letters behind it.
  const std::size_t second = at + first.text.size();
  if (!ends_line(text[at]) && second < text.size() && kind_at(text, second) == Kind::kLetter) {
    return end_of_run(text, second, Kind::kLetter);
  }
  const std::size_t signs = at + (text[at] == ' ' ? 1 : 0);
  if (signs < text.size() && kind_at(text, signs) == Kind::kOther) {
    return end_of_lines(text, end_of_run(text, signs, Kind::kOther));
  }
  // Spaces are cut behind the last end of a line among them.
  const std::string_view spaces = text.substr(at, end_of_run(text, at, Kind::kSpace) - at);
  if (const std::size_t line = spaces.find_last_of("\r\n"); line != std::string_view::npos) return at + line + 1;
  return end_of_spaces(text, at);
}

}  // namespace

std::optional<CutPattern> cut_pattern(std::string_view regular_expression) {
  for (const auto& [pattern, text] : kPatterns) {
    if (text == regular_expression) return pattern;
  }
  return std::nullopt;
}

std::size_t end_of_piece(CutPattern pattern, std::string_view text, std::size_t at) {
  switch (pattern) {
    case CutPattern::kGpt2:
      return end_of_gpt2_piece(text, at);
    case CutPattern::kLlama3:
      return end_of_llama3_piece(text, at, 3);
    case CutPattern::kQwen2:
      return end_of_llama3_piece(text, at, 1);
  }
  return text.size();
}

}  // namespace lockstep::data
