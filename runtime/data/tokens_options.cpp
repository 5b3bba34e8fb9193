// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokens_options.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::data {

std::int64_t masked_targets(const MaskedTokensOptions& options, std::int64_t context) {
  return std::llround(options.share * static_cast<double>(context));
}

FieldProblems problems_of(const MaskedTokensOptions& options, std::int64_t context) {
  FieldChecks checks;
  const bool is_share = checks.check(options.share > 0 && options.share <= 1, "share", "> 0 and <= 1", options.share);
  if (is_share && context > 0 && masked_targets(options, context) < 1) {
    checks.error("share", fmt::format("leaves a sample of {} tokens without a target", context));
  }
  if (options.mask_token) checks.not_negative(static_cast<double>(*options.mask_token), "mask_token");
  return checks.problems();
}

FieldProblems problems_of(const TokensOptions& options) {
  FieldChecks checks;
  if (options.files.empty()) checks.error("files", "is required: the files of tokens, [\"train.bin\"]");
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    if (options.files[i].empty()) checks.error(fmt::format("files[{}]", i), "is required: the path of a file");
  }
  checks.at_least_one(static_cast<double>(options.context), "context");
  checks.not_negative(static_cast<double>(options.stride), "stride");
  checks.fraction(options.begin, "begin");
  checks.check(options.end > options.begin && options.end <= 1, "end", "> begin and <= 1", options.end, {"begin"});
  checks.not_negative(static_cast<double>(options.vocabulary), "vocabulary");
  const bool has_pairs = !options.vocab_file.empty();
  if (has_pairs && options.merges_file.empty()) checks.error("merges_file", "is required beside vocab_file");
  if (!has_pairs && !options.merges_file.empty()) checks.error("vocab_file", "is required beside merges_file");
  if (!has_pairs && options.format == TokenFormat::kBpe) checks.error("vocab_file", "is required for BPE");
  if (has_pairs && options.format == TokenFormat::kBytes) {
    checks.error("vocab_file", "is for other formats than BYTES", {"format"});
  }
  FieldProblems problems = checks.problems();
  if (!options.masked) return problems;
  for (FieldProblem& problem : problems_of(*options.masked, options.context)) {
    problem.field = "masked." + problem.field;
    problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace lockstep::data
