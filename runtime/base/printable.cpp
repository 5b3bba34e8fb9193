// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace lockstep {

namespace {

/// The facts that the first byte of a character in UTF-8 tells.
struct Lead {
  std::size_t bytes;  ///< 0: it begins none
  char32_t bits;      ///< of the character's code
  char32_t least;     ///< the first code that needs so many bytes
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >> 5 == 0b110) return {2, byte & 0x1fu, 0x80};
  if (byte >> 4 == 0b1110) return {3, byte & 0x0fu, 0x800};
  if (byte >> 3 == 0b11110) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

bool is_control(char32_t code) {
  return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
}

bool is_surrogate(char32_t code) { return code >= 0xd800 && code < 0xe000; }

enum class Controls { kEscape, kKeep };

/// The bytes of the character that `text` begins with; 0 where there is none that may be shown.
std::size_t shown_bytes(std::string_view text, Controls controls) {
  const Lead lead = lead_of(static_cast<unsigned char>(text.front()));
  if (lead.bytes == 0 || lead.bytes > text.size()) return 0;
  char32_t code = lead.bits;
  for (const char each : text.substr(1, lead.bytes - 1)) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >> 6 != 0b10) return 0;
    code = code << 6 | (byte & 0x3fu);
  }
  const bool valid = code >= lead.least && code <= 0x10ffff && !is_surrogate(code);
  return valid && (controls == Controls::kKeep || !is_control(code)) ? lead.bytes : 0;
}

std::string escaped(std::string_view text, Controls controls) {
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = shown_bytes(text, controls);
    if (bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, Controls::kEscape); }

std::string valid_utf8(std::string_view text) { return escaped(text, Controls::kKeep); }

}  // namespace lockstep
