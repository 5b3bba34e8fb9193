// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/text_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/data/formats/characters.h"

namespace lockstep::data {

namespace {

bool is_numbers(const TokensOptions& options) {
  if (holds_numbers(options.format)) return true;
  const auto is_bin = [](const std::string& file) { return file.ends_with(".bin"); };
  return options.format == TokenFormat::kByName && std::ranges::any_of(options.files, is_bin);
}

}  // namespace

TextCodec::TextCodec(const TokensOptions& options) : TextCodec(read_tokenizer_files(options)) {
  if (tokenizer_ || !is_numbers(options)) return;
  throw UsageError(
      "data.train.tokens: the files hold numbers of tokens and not what they stand for",
      "Name their tokenizer.json as data.train.tokens.tokenizer_file, or GPT-2's files of their vocabulary: "
      "--set data.train.tokens.vocab_file=vocab.json --set data.train.tokens.merges_file=merges.txt");
}

TextCodec::TextCodec(const TokenizerFiles& files) : tokenizer_(make_tokenizer(files)) {}

std::vector<std::int64_t> TextCodec::encode(std::string_view text) const {
  std::vector<std::int64_t> tokens;
  if (!tokenizer_) {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  if (const std::optional<std::size_t> wrong = find_invalid_utf8(text)) {
    throw UsageError(fmt::format("byte {} of the text is not UTF-8", *wrong), "Convert it, for example with iconv.");
  }
  for (const std::uint32_t token : tokenizer_->encode(text)) tokens.push_back(token);
  return tokens;
}

std::string TextCodec::decode(std::int64_t token) const {
  if (tokenizer_) return tokenizer_->text_of(static_cast<std::uint32_t>(token));
  return token < 256 ? std::string(1, static_cast<char>(token)) : std::string();
}

}  // namespace lockstep::data
