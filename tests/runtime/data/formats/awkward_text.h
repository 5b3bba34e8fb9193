// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

/// The text that tests/golden/families/tokenizers.py draws of its snippets and blocks of characters.
inline std::string awkward_text(const nlohmann::json& draws) {
  std::uint64_t state = 1;
  const auto next = [&state](std::size_t below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % below;
  };
  const nlohmann::json& snippets = draws["snippets"];
  const nlohmann::json& blocks = draws["blocks"];
  std::string text;
  while (text.size() < draws["bytes"].get<std::size_t>()) {
    if (next(3) == 0) {
      text += snippets[next(snippets.size())].get<std::string>();
    } else {
      const nlohmann::json& block = blocks[next(blocks.size())];
      const auto first = block[0].get<std::int32_t>(), last = block[1].get<std::int32_t>();
      for (std::uint64_t count = 1 + next(5); count > 0; --count) {
        text += utf8_of(first + static_cast<std::int32_t>(next(static_cast<std::size_t>(last - first) + 1)));
      }
    }
    if (next(4) == 0) text += ' ';
  }
  return text;
}

/// FNV-1a over numbers.
inline std::uint64_t digest_of(const std::vector<std::uint32_t>& tokens) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const std::uint32_t token : tokens) value = (value ^ token) * 0x100000001b3;
  return value;
}

}  // namespace lockstep::data
