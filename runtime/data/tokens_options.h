// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"

namespace lockstep::data {

enum class TokenFormat {
  /// for *.bin kLlmC or kUint16, as the first bytes say, and refused where they look like numbers of 4 bytes; for
  /// others kBpe with a vocab_file, kBytes without
  kByName,
  kBytes,   ///< each byte is a token
  kBpe,     ///< UTF-8 text, encoded as GPT-2 does it
  kUint16,  ///< nanoGPT's .bin: little-endian numbers of 2 bytes
  kLlmC,    ///< llm.c's .bin: 256 little-endian int32, which begin with 20240520, 1 and the count, and such numbers
};

/// Which tokens of a sample are hidden: MaskedTokens.
struct MaskedTokensOptions {
  double share = 0.15;  ///< of a sample's tokens that are targets; in (0, 1]
  std::optional<std::int64_t> mask_token =
      {};  ///< stands for a hidden token; default: one token more than the data has

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
  std::int64_t context = 0;      ///< has to be given
  std::int64_t stride = 0;       ///< tokens between the starts of two samples; 0: `context`
  double begin = 0;              ///< share of all tokens before the first sample
  double end = 1;                ///< share of all tokens at which the last sample ends
  std::int64_t vocabulary = 0;   ///< 0: 256 for bytes, that of vocab_file for BPE, GPT-2's 50257 for the others
  std::string vocab_file = {};   ///< GPT-2's vocab.json, for BPE; of numbers: what they stand for, for TextCodec
  std::string merges_file = {};  ///< GPT-2's merges.txt, beside vocab_file
  /// The targets are tokens that the sample hides; otherwise the token after each.
  std::optional<MaskedTokensOptions> masked = {};

  bool operator==(const TokensOptions&) const = default;
};

/// By field; what is in the files is looked at when they are opened.
FieldProblems problems_of(const TokensOptions& options);

}  // namespace lockstep::data
