// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/vocabulary.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_set>

#include "runtime/base/json_text.h"
#include "runtime/data/formats/byte_level.h"

namespace lockstep::data {

TokenNumbers read_numbers(const TokenizerPart& vocabulary, const std::string& advice) {
  const nlohmann::json& value = vocabulary.value();
  if (!value.is_object()) vocabulary.refuse("is no JSON object", advice);
  TokenNumbers numbers;
  std::unordered_set<std::uint32_t> seen;
  for (const auto& [text, number] : value.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
      vocabulary.refuse(
          fmt::format("has a token \"{}\" whose number is {}, expected one from 0 on", text, shown(number)), advice);
    }
    const auto token = number.get<std::uint32_t>();
    if (!seen.insert(token).second) vocabulary.refuse(fmt::format("has two tokens of the number {}", token), advice);
    numbers.emplace(text, token);
  }
  return numbers;
}

std::optional<std::pair<std::string, std::string>> pair_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair{std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

TokenNumbers numbers_by_bytes(const TokenNumbers& numbers) {
  TokenNumbers by_bytes;
  for (const auto& [text, number] : numbers) {
    if (auto bytes = bytes_of_names(text)) by_bytes.emplace(std::move(*bytes), number);
  }
  return by_bytes;
}

std::unordered_map<std::uint32_t, std::string> texts_of_byte_level(const TokenNumbers& numbers) {
  std::unordered_map<std::uint32_t, std::string> texts;
  for (const auto& [text, number] : numbers) texts.emplace(number, bytes_of_names(text).value_or(text));
  return texts;
}

}  // namespace lockstep::data
