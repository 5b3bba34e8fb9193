// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/pre_tokens.h"

#include <utf8proc.h>

namespace lockstep::data {

namespace {

enum class Kind { kLetter, kNumber, kSpace, kOther };

struct Character {
  Kind kind;
  std::size_t bytes;
};

/// The property White_Space of control characters, which have no category of their own.
bool is_control_space(utf8proc_int32_t code) { return (code >= 0x09 && code <= 0x0d) || code == 0x85; }

Kind kind_of(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Kind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Kind::kSpace;
    default:
      return is_control_space(code) ? Kind::kSpace : Kind::kOther;
  }
}

/// The length in bytes of the character at `at`, or a negative number where none begins there.
utf8proc_ssize_t decode(std::string_view text, std::size_t at, utf8proc_int32_t& code) {
  return utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                          static_cast<utf8proc_ssize_t>(text.size() - at), &code);
}

Character character_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes = decode(text, at, code);
  if (bytes <= 0) return {Kind::kOther, 1};
  return {kind_of(code), static_cast<std::size_t>(bytes)};
}

/// The end of the characters of one kind that begin at `at`.
std::size_t end_of_run(std::string_view text, std::size_t at, Kind kind, std::size_t* last = nullptr) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    if (last != nullptr) *last = at;
    at += next.bytes;
  }
  return at;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  utf8proc_int32_t code = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8proc_ssize_t bytes = decode(text, at, code);
    if (bytes <= 0) return at;
    at += static_cast<std::size_t>(bytes);
  }
  return std::nullopt;
}

std::size_t end_of_piece(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (rest.starts_with(contraction)) return at + contraction.size();
  }
  // One space belongs to the word behind it.
  const std::size_t word = at + (rest.starts_with(' ') ? 1 : 0);
  if (word < text.size()) {
    const Kind kind = character_at(text, word).kind;
    if (kind != Kind::kSpace) return end_of_run(text, word, kind);
  }
  // Spaces before a word leave it the last one of them.
  std::size_t last = at;
  const std::size_t end = end_of_run(text, at, Kind::kSpace, &last);
  return end < text.size() && last > at ? last : end;
}

}  // namespace lockstep::data
