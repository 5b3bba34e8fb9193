// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/token_source.h"

namespace lockstep::data {

/// Windows of token sequences: the input is `context` tokens, the targets the token after each. No window reaches over
/// the end of a file, nor over the shares of all tokens that the options give: what is trained on and what is evaluated
/// with may be two parts of one file.
class TokensDataset : public Dataset {
 public:
  /// Throws FieldError for options without a meaning, and StorageError that names the file and what is wrong with it or
  /// says that there is no sample.
  explicit TokensDataset(const TokensOptions& options);

  std::int64_t size() const override { return samples_; }
  Shape sample_shape() const override { return {context_}; }
  std::int64_t vocabulary() const override { return sources_.vocabulary; }
  std::int64_t classes() const override { return sources_.vocabulary; }
  Shape target_shape() const override { return {context_}; }
  /// Throws StorageError that names file and position of a token outside the vocabulary.
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;

 private:
  /// The windows of one file.
  struct Part {
    std::size_t file;
    std::int64_t first_sample;
    std::int64_t first_token;
  };

  std::vector<std::string> files_;
  TokenSources sources_;
  std::int64_t context_;
  std::int64_t stride_;
  std::int64_t samples_ = 0;
  std::vector<Part> parts_;  // by first_sample; each has a sample
};

/// Texts, as a job asks for them.
struct TokensKind : DatasetKind<TokensKind, TokensOptions> {
  static DatasetPtr open(const Options& options);
  static void become_eval(Options& eval, const Options* train);
};

}  // namespace lockstep::data
