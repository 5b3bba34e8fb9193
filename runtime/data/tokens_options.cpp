// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokens_options.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/option_checks.h"

namespace lockstep::data {

std::int64_t masked_targets(const MaskedTokensOptions& options, std::int64_t context) {
  return std::llround(options.share * static_cast<double>(context));
}

namespace {

void check_targets(const MaskedTokensOptions& options, std::int64_t context, const std::string& at,
                   FieldChecks& checks) {
  if (!(options.share > 0 && options.share <= 1) || context < 1 || masked_targets(options, context) >= 1) return;
  checks.error(at + "share", fmt::format("leaves a sample of {} tokens without a target", context));
}

}  // namespace

FieldProblems problems_of(const MaskedTokensOptions& options, std::int64_t context) {
  FieldChecks checks;
  check_fields(options, checks);
  check_targets(options, context, "", checks);
  return checks.problems();
}

void complete(TokensOptions& options) {
  if (options.stride == 0) options.stride = options.context;
}

FieldProblems problems_of(const TokensOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  checks.check(options.end > options.begin && options.end <= 1, "end", "> begin and <= 1", options.end, {"begin"});
  const bool has_pairs = !options.vocab_file.empty();
  if (has_pairs && options.merges_file.empty()) checks.error("merges_file", "is required beside vocab_file");
  if (!has_pairs && !options.merges_file.empty()) checks.error("vocab_file", "is required beside merges_file");
  const bool has_tokenizer = !options.tokenizer_file.empty();
  if (has_pairs && has_tokenizer) {
    checks.error("tokenizer_file", "stands in place of vocab_file and merges_file", {"vocab_file"});
  }
  if (!has_pairs && !has_tokenizer && options.format == TokenFormat::kBpe) {
    checks.error("vocab_file", "is required for BPE, or a tokenizer_file");
  }
  if (options.format == TokenFormat::kBytes) {
    const std::string why = "is for other formats than BYTES";
    if (has_pairs) checks.error("vocab_file", why, {"format"});
    if (has_tokenizer) checks.error("tokenizer_file", why, {"format"});
  }
  if (options.format == TokenFormat::kUint32 && options.vocabulary == 0 && !has_tokenizer) {
    checks.error("vocabulary", "is required for UINT32 without a tokenizer_file: how many tokens there are");
  }
  if (options.masked) check_targets(*options.masked, options.context, "masked.", checks);
  return checks.problems();
}

}  // namespace lockstep::data
