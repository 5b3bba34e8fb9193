// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/text_codec.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

bool is_numbers(const TokensOptions& options) {
  if (options.format == TokenFormat::kUint16 || options.format == TokenFormat::kLlmC) return true;
  const auto is_bin = [](const std::string& file) { return file.ends_with(".bin"); };
  return options.format == TokenFormat::kByName && std::ranges::any_of(options.files, is_bin);
}

}  // namespace

TextCodec::TextCodec(const TokensOptions& options) {
  if (!options.vocab_file.empty()) {
    pairs_.emplace(options.vocab_file, options.merges_file);
  } else if (is_numbers(options)) {
    throw UsageError("data.train.tokens: the files hold numbers of tokens and not what they stand for",
                     "Name GPT-2's files of their vocabulary: --set data.train.tokens.vocab_file=vocab.json --set "
                     "data.train.tokens.merges_file=merges.txt");
  }
}

std::vector<std::int64_t> TextCodec::encode(std::string_view text) const {
  std::vector<std::int64_t> tokens;
  if (pairs_) {
    for (const std::uint32_t token : pairs_->encode(text)) tokens.push_back(token);
  } else {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  }
  return tokens;
}

std::string TextCodec::decode(std::int64_t token) const {
  if (pairs_) return pairs_->text_of(static_cast<std::uint32_t>(token));
  return token < 256 ? std::string(1, static_cast<char>(token)) : std::string();
}

}  // namespace lockstep::data
