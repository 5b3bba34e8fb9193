// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer_files.h"

namespace lockstep::data {

/// Text to the tokens of a data set, and back.
class TextCodec {
 public:
  /// Throws UsageError for tokens that say nothing of their text: numbers in a .bin file. StorageError as
  /// read_tokenizer_files() and make_tokenizer().
  explicit TextCodec(const TokensOptions& options);
  /// Of the files that read_tokenizer_files() gave: the same codec without them on disk.
  explicit TextCodec(const TokenizerFiles& files);

  /// Throws UsageError for a text that is no UTF-8 where tokens are more than bytes.
  std::vector<std::int64_t> encode(std::string_view text) const;
  /// The bytes of a token; they may be a part of a character. Empty for one that the vocabulary does not have.
  std::string decode(std::int64_t token) const;

 private:
  std::unique_ptr<AnyTokenizer> tokenizer_;  ///< none: each byte is a token
};

}  // namespace lockstep::data
