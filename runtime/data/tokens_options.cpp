// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokens_options.h"

#include <fmt/format.h>

namespace lockstep::data {

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
  if (has_pairs && options.format != TokenFormat::kBpe && options.format != TokenFormat::kByName) {
    checks.error("vocab_file", "is for the format BPE alone", {"format"});
  }
  return checks.problems();
}

}  // namespace lockstep::data
