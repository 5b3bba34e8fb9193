// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/characters.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

/// The property White_Space of control characters, which have no category of their own.
bool is_control_space(std::int32_t code) { return (code >= 0x09 && code <= 0x0d) || code == 0x85; }

bool is_ascii(char byte) { return static_cast<unsigned char>(byte) < 0x80; }

utf8proc_option_t options_of(NormalForm form) {
  constexpr int kCompose = UTF8PROC_STABLE | UTF8PROC_COMPOSE, kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  switch (form) {
    case NormalForm::kNfc:
      return static_cast<utf8proc_option_t>(kCompose);
    case NormalForm::kNfd:
      return static_cast<utf8proc_option_t>(kDecompose);
    case NormalForm::kNfkc:
      return static_cast<utf8proc_option_t>(kCompose | UTF8PROC_COMPAT);
    case NormalForm::kNfkd:
      return static_cast<utf8proc_option_t>(kDecompose | UTF8PROC_COMPAT);
  }
  return static_cast<utf8proc_option_t>(kCompose);
}

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

void append_normal_form(std::string_view text, NormalForm form, std::string& out) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                              static_cast<utf8proc_ssize_t>(text.size()), &made, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(made);
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (bytes < 0) throw StorageError(std::string("a text has no normal form: ") + utf8proc_errmsg(bytes));
  out.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(bytes));
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  utf8proc_int32_t code = -1;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                                  static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (bytes <= 0) return {-1, text.substr(at, 1)};
  return {code, text.substr(at, static_cast<std::size_t>(bytes))};
}

CharacterKind character_kind(std::int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharacterKind::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterKind::kNumber;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharacterKind::kSpace;
    default:
      return is_control_space(code) ? CharacterKind::kSpace : CharacterKind::kOther;
  }
}

bool is_space(std::int32_t code) { return character_kind(code) == CharacterKind::kSpace; }

bool is_punctuation(std::int32_t code) {
  if (code < 0x80) return code > 0x20 && code < 0x7f && character_kind(code) == CharacterKind::kOther;
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing(std::int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_MN; }

bool is_other(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

std::string utf8_of(std::int32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t count = utf8proc_encode_char(code, bytes.data());
  return {bytes.begin(), bytes.begin() + count};
}

std::string lower_case(std::int32_t code) {
  constexpr std::int32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two
  if (code == kCapitalIWithDot) return "i\u0307";
  return utf8_of(utf8proc_tolower(code));
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.code < 0) return at;
    at += character.text.size();
  }
  return std::nullopt;
}

std::string normal_form(std::string_view text, NormalForm form) {
  // ASCII is what it is, but for its last character before another one: a mark may join it. The library takes 4 bytes a
  // character, so it gets the rest in parts.
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t plain = at;
    while (plain < text.size() && is_ascii(text[plain])) ++plain;
    if (plain < text.size() && plain > at) --plain;
    out.append(text.substr(at, plain - at));
    at = plain;
    if (at == text.size()) break;
    std::size_t end = at + 1;
    while (end < text.size() && !is_ascii(text[end])) ++end;
    append_normal_form(text.substr(at, end - at), form, out);
    at = end;
  }
  return out;
}

std::string map_characters(std::string_view text, const std::function<std::string(const Character&)>& change) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    out += change(character);
    at += character.text.size();
  }
  return out;
}

}  // namespace lockstep::data
