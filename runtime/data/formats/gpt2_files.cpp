// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/gpt2_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/data/formats/byte_level.h"
#include "runtime/data/formats/byte_pairs.h"
#include "runtime/data/formats/text_tokenizer.h"
#include "runtime/data/formats/vocabulary.h"

namespace lockstep::data {

namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::string_view kExpected = "It should be GPT-2's vocab.json: an object of tokens' texts and numbers.";

TokenNumbers read_vocabulary(const TokenizerFile& vocab) {
  const nlohmann::json file = parse_json(vocab.content);
  if (file.is_discarded()) {
    throw StorageError(fmt::format("{}: is no JSON of at most {} levels", vocab.name, kMostJsonLevels),
                       std::string(kExpected));
  }
  return read_numbers({file, vocab.name, ""}, std::string(kExpected));
}

PairMerges read_merges(const TokenizerFile& merges, const TokenNumbers& numbers, const std::string& vocab_name) {
  PairMerges pairs;
  std::string_view rest = merges.content;
  for (std::uint32_t line_number = 1; !rest.empty(); ++line_number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const auto token = [&](const std::string& text) {
      const auto found = numbers.find(text);
      if (found != numbers.end()) return found->second;
      throw StorageError(fmt::format("{}:{}: \"{}\" is no token of {}", merges.name, line_number, text, vocab_name),
                         "Check that the two files belong together.");
    };
    const auto pair = pair_of(line);
    if (!pair) {
      throw StorageError(fmt::format("{}:{}: expected two tokens with a space between them", merges.name, line_number));
    }
    const std::uint32_t left = token(pair->first), right = token(pair->second);
    pairs.add(left, right, line_number, token(pair->first + pair->second));
  }
  return pairs;
}

}  // namespace

std::unique_ptr<AnyTokenizer> read_gpt2_files(const TokenizerFile& vocab, const TokenizerFile& merges) {
  const TokenNumbers numbers = read_vocabulary(vocab);
  for (std::size_t byte = 0; byte < byte_names().size(); ++byte) {
    const std::string& name = byte_names()[byte];
    if (numbers.contains(name)) continue;
    throw StorageError(fmt::format("{}: has no token for the byte {:#04x}, \"{}\"", vocab.name, byte, name));
  }
  TextTokenizer::Parts parts;
  parts.pre_tokenizer = PreTokenizer(CutPattern::kGpt2);
  parts.texts = texts_of_byte_level(numbers);
  parts.model = std::make_unique<BytePairs>(numbers_by_bytes(numbers), read_merges(merges, numbers, vocab.name),
                                            BytePairsRules{.byte_level = true});
  if (const auto end = numbers.find(kEndOfText); end != numbers.end()) {
    parts.raw = AddedTokens({{std::string(kEndOfText), end->second}});
  }
  return std::make_unique<TextTokenizer>(std::move(parts));
}

}  // namespace lockstep::data
