// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/piece_normalizer.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kEscapedSpace = "\u2581";

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t word = 0;
  for (std::size_t i = 4; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  return word;
}

// The bits of a node.
bool has_value(std::uint32_t node) { return (node >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t node) { return node & 0x7fffffff; }
std::uint32_t label_of(std::uint32_t node) { return node & 0x800000ff; }
std::size_t distance_of(std::uint32_t node) { return std::size_t{node >> 10} << ((node & 0x200) >> 6); }

}  // namespace

void PrefixTree::add(std::string_view text, std::uint32_t value) {
  std::uint64_t node = 0;
  for (const char byte : text) {
    node = edges_.emplace(node << 8 | static_cast<unsigned char>(byte), edges_.size() + 1).first->second;
  }
  values_.emplace(node, value);
}

std::size_t PrefixTree::longest_prefix(std::string_view text) const {
  std::size_t longest = 0;
  for_each_prefix(text, [&](std::size_t length, std::uint32_t) { longest = length; });
  return longest;
}

std::size_t character_bytes(std::string_view text) {
  constexpr std::array<std::uint8_t, 16> kBytes{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min<std::size_t>(kBytes[static_cast<unsigned char>(text[0]) >> 4], text.size());
}

PieceNormalizer::PieceNormalizer(const PieceModel& model, const PrefixTree& whole, const std::string& file)
    : model_(model), whole_(whole) {
  const std::string_view map = model.character_map;
  if (map.empty()) return;
  const std::size_t bytes = map.size() < 4 ? 0 : word_at(map, 0);
  const bool fits = map.size() >= 4 && bytes > 0 && bytes % 4 == 0 && bytes < map.size() - 4 && map.back() == '\0';
  if (!fits) throw StorageError(file + ": its character map is damaged");
  for (std::size_t at = 0; at < bytes; at += 4) nodes_.push_back(word_at(map, 4 + at));
  replacements_ = map.substr(4 + bytes);
}

std::pair<std::size_t, std::size_t> PieceNormalizer::find_mapped(std::string_view text) const {
  std::pair<std::size_t, std::size_t> longest{0, 0};
  if (nodes_.empty()) return longest;
  std::size_t at = distance_of(nodes_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= nodes_.size() || label_of(nodes_[at]) != byte) break;
    const std::uint32_t node = nodes_[at];
    at ^= distance_of(node);
    if (at >= nodes_.size()) break;
    const std::uint32_t value = value_of(nodes_[at]);
    if (has_value(node) && value < replacements_.size()) longest = {i + 1, value};
  }
  return longest;
}

std::pair<std::string_view, std::size_t> PieceNormalizer::first_of(std::string_view text) const {
  if (const std::size_t length = whole_.longest_prefix(text); length > 0) return {text.substr(0, length), length};
  if (const auto [length, place] = find_mapped(text); length > 0) {
    const std::string_view rest = replacements_.substr(place);
    return {rest.substr(0, rest.find('\0')), length};
  }
  const std::size_t length = character_bytes(text);
  return {text.substr(0, length), length};
}

std::string PieceNormalizer::apply(std::string_view text) const {
  while (model_.removes_spaces && !text.empty()) {
    const auto [becomes, length] = first_of(text);
    if (becomes != " ") break;
    text.remove_prefix(length);
  }
  if (text.empty()) return {};
  const std::string_view space = model_.escapes_spaces ? kEscapedSpace : " ";
  std::string out;
  if (model_.adds_space && !model_.spaces_are_suffixes) out += space;
  bool behind_space = model_.removes_spaces;
  while (!text.empty()) {
    auto [becomes, length] = first_of(text);
    text.remove_prefix(length);
    while (behind_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
    for (const char byte : becomes) byte == ' ' ? out += space : out += byte;
    if (!becomes.empty()) behind_space = becomes.ends_with(' ');
    behind_space = behind_space && model_.removes_spaces;
  }
  while (model_.removes_spaces && out.ends_with(space)) out.erase(out.size() - space.size());
  if (model_.adds_space && model_.spaces_are_suffixes) out += space;
  return out;
}

}  // namespace lockstep::data
