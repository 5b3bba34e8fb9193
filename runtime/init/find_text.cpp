// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

constexpr std::int64_t kLeastContext = 4;
/// GPT-2's take 4 to 5 of English.
constexpr std::int64_t kMostBytesOfTokens = 6;

bool has_tokenizer(const TextKind& kind) { return !kind.vocab_file.empty() || !kind.tokenizer_file.empty(); }

std::int64_t bytes_a_token(const TextKind& kind) {
  if (kind.tokens) return 2;
  return has_tokenizer(kind) ? kMostBytesOfTokens : 1;
}

std::string name_of(const TextKind& kind) {
  if (kind.tokens) return "tokens";
  if (!kind.tokenizer_file.empty()) return "text, tokens of " + kind.tokenizer_file;
  return kind.vocab_file.empty() ? "text, a token a byte" : "text, tokens of a vocabulary's byte pairs";
}

std::int64_t total_bytes(const std::vector<std::string>& files) {
  std::int64_t bytes = 0;
  for (const std::string& file : files) bytes += static_cast<std::int64_t>(std::filesystem::file_size(file));
  return bytes;
}

}  // namespace

FoundData find_text(const Split& files, const TextKind& kind, const FindOptions& asked) {
  std::int64_t context = asked.context;
  const std::int64_t width = bytes_a_token(kind);
  const std::int64_t least =
      files.eval.empty() ? total_bytes(files.train) / 10 : std::min(total_bytes(files.train), total_bytes(files.eval));
  while (context > kLeastContext && least / width < 2 * context) context /= 2;
  if (least / width < 2 * context) throw UsageError(files.train[0] + " is too short to learn from");
  data::TokensOptions options{.files = files.train,
                              .context = context,
                              .vocab_file = kind.vocab_file,
                              .merges_file = kind.merges_file,
                              .tokenizer_file = kind.tokenizer_file};
  if (asked.hides_tokens) options.masked.emplace();
  FoundData found{name_of(kind)};
  data::TokensOptions eval = options;
  if (files.eval.empty()) {
    options.end = eval.begin = 0.9;
    found.notes.emplace_back("the last tenth of the text is for evaluation");
  } else {
    eval.files = files.eval;
  }
  found.options.train = options;
  found.options.eval = eval;
  return found;
}

}  // namespace lockstep::init
