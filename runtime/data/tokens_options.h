// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

namespace lockstep::data {

enum class TokenFormat {
  /// for *.bin kLlmC or kUint16, as the first bytes say, and refused where they look like numbers of 4 bytes; for
  /// others kBpe with a tokenizer, kBytes without
  kByName,
  kBytes,   ///< each byte is a token
  kBpe,     ///< UTF-8 text, encoded by the tokenizer
  kUint16,  ///< nanoGPT's .bin: little-endian numbers of 2 bytes
  kLlmC,    ///< llm.c's .bin: 256 little-endian int32, which begin with a magic number, a version and the count, and
            ///< numbers of 2 bytes (20240520, 1) or 4 (20240801, 7)
  kUint32,  ///< little-endian numbers of 4 bytes
};

/// Whether files of the format hold numbers of tokens, not text.
constexpr bool holds_numbers(TokenFormat format) {
  return format == TokenFormat::kUint16 || format == TokenFormat::kLlmC || format == TokenFormat::kUint32;
}

/// Which tokens of a sample are hidden: MaskedTokens.
struct MaskedTokensOptions {
  double share = 0.15;  ///< of a sample's tokens that are targets; in (0, 1]
  std::optional<std::int64_t> mask_token =
      {};  ///< stands for a hidden token; default: one token more than the data has

  static constexpr auto fields() {
    return std::tuple(option("share", &MaskedTokensOptions::share, Bound{"> 0 and <= 1", 0, true, 1}),
                      option("mask_token", &MaskedTokensOptions::mask_token, kNotNegative));
  }
  bool operator==(const MaskedTokensOptions&) const = default;
};

/// How many of `context` tokens are targets: round(share * context).
std::int64_t masked_targets(const MaskedTokensOptions& options, std::int64_t context);

/// By field, for samples of `context` tokens.
FieldProblems problems_of(const MaskedTokensOptions& options, std::int64_t context);

/// Files of tokens. A sample is `context` tokens of one file; its targets are the token after each.
struct TokensOptions {
  std::vector<std::string> files = {};  ///< at least one
  TokenFormat format = TokenFormat::kByName;
  std::int64_t context = 0;  ///< has to be given
  std::int64_t stride = 0;   ///< tokens between the starts of two samples; 0: `context`
  double begin = 0;          ///< share of all tokens before the first sample
  double end = 1;            ///< share of all tokens at which the last sample ends
  /// 0: 256 for bytes, the tokenizer's for BPE; for numbers that of tokenizer_file, or else GPT-2's 50257 for those of
  /// 2 bytes and Llama 3's 128256 for llm.c's of 4
  std::int64_t vocabulary = 0;
  std::string vocab_file = {};   ///< GPT-2's vocab.json, for BPE; of numbers: what they stand for, for TextCodec
  std::string merges_file = {};  ///< GPT-2's merges.txt, beside vocab_file
  /// The targets are tokens that the sample hides; otherwise the token after each.
  std::optional<MaskedTokensOptions> masked = {};
  std::string tokenizer_file = {};  ///< Hugging Face's tokenizer.json or SentencePiece's *.model, in place of both

  static constexpr std::string_view kKind = "tokens";  ///< its name in a job
  static constexpr auto fields() {
    return std::tuple(
        option("files", &TokensOptions::files, Names::kFile, Required{"the files of tokens, [\"train.bin\"]"}),
        option("format", &TokensOptions::format, Otherwise::kFollows),
        option("context", &TokensOptions::context, kAtLeastOne, Required{"the tokens of a sample"}),
        option("stride", &TokensOptions::stride, kAtLeastOne, Otherwise::kFollows),
        option("begin", &TokensOptions::begin, kFraction), option("end", &TokensOptions::end),
        option("vocabulary", &TokensOptions::vocabulary, kAtLeastOne, Otherwise::kFollows),
        option("vocab_file", &TokensOptions::vocab_file, Names::kFile),
        option("merges_file", &TokensOptions::merges_file, Names::kFile), option("masked", &TokensOptions::masked),
        option("tokenizer_file", &TokensOptions::tokenizer_file, Names::kFile));
  }
  bool operator==(const TokensOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const TokensOptions& options);

/// Gives what follows from other options its value.
void complete(TokensOptions& options);

}  // namespace lockstep::data

namespace lockstep {

/// The formats that a job can name; it names none for kByName.
template <>
struct EnumNames<data::TokenFormat> {
  static constexpr std::array kNames{std::pair{data::TokenFormat::kBytes, std::string_view("BYTES")},
                                     std::pair{data::TokenFormat::kBpe, std::string_view("BPE")},
                                     std::pair{data::TokenFormat::kUint16, std::string_view("UINT16")},
                                     std::pair{data::TokenFormat::kLlmC, std::string_view("LLM_C")},
                                     std::pair{data::TokenFormat::kUint32, std::string_view("UINT32")}};
};

}  // namespace lockstep
