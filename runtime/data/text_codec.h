// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/byte_pairs.h"
#include "runtime/data/tokens_options.h"

namespace lockstep::data {

/// Text to the tokens of a data set, and back.
class TextCodec {
 public:
  /// Throws UsageError for tokens that say nothing of their text: numbers in a .bin file. StorageError as BytePairs.
  explicit TextCodec(const TokensOptions& options);

  std::vector<std::int64_t> encode(std::string_view text) const;
  /// The bytes of a token; they may be a part of a character. Empty for one that the vocabulary does not have.
  std::string decode(std::int64_t token) const;

 private:
  std::optional<BytePairs> pairs_;  ///< none: each byte is a token
};

}  // namespace lockstep::data
