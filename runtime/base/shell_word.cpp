// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace lockstep {

std::string shell_word(const std::string& text) {
  static constexpr std::string_view kPlain = "+,-./:=@_%";
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

}  // namespace lockstep
