// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/byte_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/files/stored_file.h"
#include "runtime/base/json_text.h"
#include "runtime/data/formats/pre_tokens.h"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{64} << 20;
constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

using Vocabulary = std::unordered_map<std::string, std::uint32_t>;

/// How the files write a byte: printable ones of Latin-1 as themselves, the others as characters from U+0100 on.
std::array<std::string, 256> byte_names() {
  const auto is_printable = [](unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  };
  std::array<std::string, 256> names;
  unsigned others = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned code = is_printable(byte) ? byte : 0x100 + others++;
    if (code < 0x80) {
      names[byte] = static_cast<char>(code);
    } else {
      names[byte] = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    }
  }
  return names;
}

/// The text that the files write as `text`; a token like "<|endoftext|>" is written as it is.
std::string bytes_of(std::string_view text, const std::array<std::string, 256>& names) {
  std::string bytes;
  while (!text.empty()) {
    const std::size_t length = (static_cast<unsigned char>(text[0]) & 0xe0) == 0xc0 ? 2 : 1;
    const std::string_view name = text.substr(0, length);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      bytes += name;
    } else {
      bytes += static_cast<char>(found - names.begin());
    }
    text.remove_prefix(name.size());
  }
  return bytes;
}

Vocabulary read_vocabulary(const std::string& path) {
  const auto refuse = [&path](const std::string& why) {
    throw StorageError(path + ": " + why, "It should be GPT-2's vocab.json: an object of tokens' texts and numbers.");
  };
  const nlohmann::json file = parse_json(StoredFile(path).read_text(kMostFileBytes));
  if (file.is_discarded()) refuse(fmt::format("is no JSON of at most {} levels", kMostJsonLevels));
  if (!file.is_object()) refuse("is no JSON object");
  Vocabulary vocabulary;
  std::unordered_set<std::uint32_t> seen;
  for (const auto& [text, number] : file.items()) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
      refuse(fmt::format("the number of token \"{}\" is {}, expected one from 0 on", text, shown(number)));
    }
    const auto token = number.get<std::uint32_t>();
    if (!seen.insert(token).second) refuse(fmt::format("two tokens have the number {}", token));
    vocabulary.emplace(text, token);
  }
  return vocabulary;
}

}  // namespace

BytePairs::BytePairs(const std::string& vocab_file, const std::string& merges_file) {
  const Vocabulary vocabulary = read_vocabulary(vocab_file);
  const std::array<std::string, 256> names = byte_names();
  for (std::size_t byte = 0; byte < names.size(); ++byte) {
    const auto found = vocabulary.find(names[byte]);
    if (found == vocabulary.end()) {
      throw StorageError(fmt::format("{}: has no token for the byte {:#04x}, \"{}\"", vocab_file, byte, names[byte]));
    }
    byte_tokens_[byte] = found->second;
  }
  for (const auto& [text, token] : vocabulary) {
    vocabulary_ = std::max(vocabulary_, std::int64_t{token} + 1);
    texts_.emplace(token, bytes_of(text, names));
  }
  if (const auto end = vocabulary.find(std::string(kEndOfText)); end != vocabulary.end()) end_of_text_ = end->second;

  const std::string merges = StoredFile(merges_file).read_text(kMostFileBytes);
  std::string_view rest = merges;
  for (std::uint32_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    const auto token = [&](const std::string& text) {
      const auto found = vocabulary.find(text);
      if (found != vocabulary.end()) return found->second;
      throw StorageError(fmt::format("{}:{}: \"{}\" is no token of {}", merges_file, number, text, vocab_file),
                         "Check that the two files belong together.");
    };
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      throw StorageError(fmt::format("{}:{}: expected two tokens with a space between them", merges_file, number));
    }
    const std::string left(line.substr(0, space));
    const std::string right(line.substr(space + 1));
    const std::uint64_t pair = std::uint64_t{token(left)} << 32 | token(right);
    merges_.emplace(pair, Merge{number, token(left + right)});
  }
}

std::string BytePairs::text_of(std::uint32_t token) const {
  const auto found = texts_.find(token);
  return found == texts_.end() ? std::string() : found->second;
}

const BytePairs::Merge* BytePairs::find_merge(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(std::uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::append_piece(std::string_view piece, std::vector<std::uint32_t>& tokens) const {
  // A list of the tokens that are left; the one at place i covers the bytes up to `next`.
  struct Token {
    std::uint32_t value;
    std::uint32_t next;
    std::uint32_t previous;
  };
  const auto count = static_cast<std::uint32_t>(piece.size());
  std::vector<Token> list(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    list[i] = {byte_tokens_[static_cast<unsigned char>(piece[i])], i + 1, i == 0 ? kNone : i - 1};
  }
  // Pairs that may join, the lowest rank first, then the leftmost. One whose tokens have changed since is passed over.
  struct Pair {
    std::uint32_t rank;
    std::uint32_t place;
    std::uint32_t left;
    std::uint32_t right;
    bool operator>(const Pair& other) const { return rank != other.rank ? rank > other.rank : place > other.place; }
  };
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto offer = [&](std::uint32_t place) {
    if (place == kNone || list[place].next >= count) return;
    const std::uint32_t right = list[list[place].next].value;
    if (const Merge* merge = find_merge(list[place].value, right)) {
      pairs.push({merge->rank, place, list[place].value, right});
    }
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Token& left = list[pair.place];
    if (left.value != pair.left || left.next >= count || list[left.next].value != pair.right) continue;
    Token& right = list[left.next];
    left.value = find_merge(pair.left, pair.right)->token;
    left.next = right.next;
    right.value = kNone;
    if (left.next < count) list[left.next].previous = pair.place;
    offer(left.previous);
    offer(pair.place);
  }
  for (std::uint32_t i = 0; i < count; i = list[i].next) tokens.push_back(list[i].value);
}

void BytePairs::append_ordinary(std::string_view text, std::vector<std::uint32_t>& tokens) const {
  // Most pieces of a text come again and again; those of the start are kept.
  constexpr std::size_t kMostKept = 1 << 16;
  constexpr std::size_t kLongestKept = 64;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> kept;  // where in `tokens`
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_piece(text, at);
    const std::string_view piece = text.substr(at, end - at);
    at = end;
    const std::size_t first = tokens.size();
    if (const auto found = kept.find(piece); found != kept.end()) {
      const auto [from, count] = found->second;
      for (std::size_t i = 0; i < count; ++i) tokens.push_back(tokens[from + i]);
      continue;
    }
    append_piece(piece, tokens);
    if (piece.size() <= kLongestKept && kept.size() < kMostKept) kept[piece] = {first, tokens.size() - first};
  }
}

std::vector<std::uint32_t> BytePairs::encode(std::string_view text) const {
  std::vector<std::uint32_t> tokens;
  while (end_of_text_) {
    const std::size_t at = text.find(kEndOfText);
    if (at == std::string_view::npos) break;
    append_ordinary(text.substr(0, at), tokens);
    tokens.push_back(*end_of_text_);
    text.remove_prefix(at + kEndOfText.size());
  }
  append_ordinary(text, tokens);
  return tokens;
}

}  // namespace lockstep::data
