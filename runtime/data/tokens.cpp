// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/masked_tokens.h"

namespace lockstep::data {

namespace {

TokenSources open_sound(const TokensOptions& options) {
  require_none(problems_of(options), "tokens");
  return open_tokens(options);
}

}  // namespace

TokensDataset::TokensDataset(const TokensOptions& options)
    : files_(options.files),
      sources_(open_sound(options)),
      context_(options.context),
      stride_(options.stride > 0 ? options.stride : options.context) {
  std::int64_t total = 0;
  for (const auto& file : sources_.files) total += file->size();
  const auto place = [total](double share) {
    return share >= 1 ? total : static_cast<std::int64_t>(share * static_cast<double>(total));
  };
  const std::int64_t begin = place(options.begin);
  const std::int64_t end = place(options.end);
  std::int64_t start = 0;  // of the file, among all tokens
  for (std::size_t file = 0; file < sources_.files.size(); ++file) {
    const std::int64_t size = sources_.files[file]->size();
    const std::int64_t first = std::clamp<std::int64_t>(begin - start, 0, size);
    const std::int64_t last = std::clamp<std::int64_t>(end - start, 0, size);
    start += size;
    // A window takes the token behind it, too.
    const std::int64_t rest = last - first - context_ - 1;
    if (rest < 0) continue;
    parts_.push_back({file, samples_, first});
    samples_ += rest / stride_ + 1;
  }
  if (samples_ > 0) return;
  throw StorageError(fmt::format("{}: no sample of {} tokens and the next one in tokens {} to {} of {}",
                                 fmt::join(files_, ", "), context_, begin, end, total),
                     "Give a shorter context, a larger share of the tokens, or more text.");
}

void TokensDataset::get(const SampleKey& key, const Sample& sample) const {
  const auto behind = std::ranges::upper_bound(parts_, key.index, {}, &Part::first_sample);
  const Part& part = *std::prev(behind);
  const std::int64_t first = part.first_token + (key.index - part.first_sample) * stride_;
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(context_) + 1);
  sources_.files[part.file]->read(first, tokens);
  const auto outside = std::ranges::find_if(tokens, [this](std::int64_t token) { return token >= vocabulary(); });
  if (outside != tokens.end()) {
    throw StorageError(fmt::format("{}: token {} at position {} is outside the vocabulary of {}", files_[part.file],
                                   *outside, first + (outside - tokens.begin()), vocabulary()),
                       "Check that the file belongs to this vocabulary, or set the vocabulary.");
  }
  std::copy_n(tokens.begin(), context_, sample.tokens.begin());
  std::copy_n(tokens.begin() + 1, context_, sample.labels.begin());
}

void TokensDataset::add_to_digest(DataHashes& hashes) const {
  Parts parts;
  for (const auto& file : sources_.files) parts.bytes.push_back(file->bytes());
  parts.read = [this](std::size_t file, std::uint64_t offset, std::span<std::byte> out) {
    sources_.files[file]->read_bytes(offset, out);
  };
  add_parts(parts, hashes.content);
}

DatasetPtr TokensKind::open(const Options& options) {
  const auto tokens = std::make_shared<TokensDataset>(options);
  return options.masked ? std::make_shared<MaskedTokens>(tokens, *options.masked) : DatasetPtr(tokens);
}

void TokensKind::become_eval(Options& eval, const Options* train) {
  if (train == nullptr) return;
  // A text without a tokenizer of its own would be bytes, which are other tokens than those that are trained on.
  if (eval.format == TokenFormat::kByName && eval.vocab_file.empty() && eval.tokenizer_file.empty()) {
    eval.vocab_file = train->vocab_file;
    eval.merges_file = train->merges_file;
    eval.tokenizer_file = train->tokenizer_file;
  }
  // Texts hide tokens as those do that are trained on.
  if (eval.masked && !train->masked) {
    throw FieldError("data.eval.tokens.masked", "the targets of data.train.tokens are the tokens after each");
  }
  if (!eval.masked) eval.masked = train->masked;
  if (eval.masked && !eval.masked->mask_token) eval.masked->mask_token = train->masked->mask_token;
}

}  // namespace lockstep::data
