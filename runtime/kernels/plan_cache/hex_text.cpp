// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/hex_text.h"

namespace lockstep::kernels {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte each : bytes) {
    text += kDigits[std::to_integer<std::size_t>(each >> 4)];
    text += kDigits[std::to_integer<std::size_t>(each & std::byte{15})];
  }
  return text;
}

bool parse_hex(std::string_view text, std::span<std::byte> bytes) {
  if (text.size() != 2 * bytes.size() || text.find_first_not_of(kDigits) != text.npos) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(16 * kDigits.find(text[2 * i]) + kDigits.find(text[2 * i + 1]));
  }
  return true;
}

}  // namespace lockstep::kernels
