// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>

#include "runtime/data/formats/added_tokens.h"
#include "runtime/data/formats/pre_tokenizer.h"
#include "runtime/data/formats/text_normalizer.h"
#include "runtime/data/formats/tokenizer.h"
#include "runtime/data/formats/word_model.h"

namespace lockstep::data {

/// A tokenizer made of the parts that Hugging Face's `tokenizers` library has, in its order: tokens that the text
/// spells out are taken out of it, the rest is normalised, cut into pieces, and each piece encoded.
class TextTokenizer : public AnyTokenizer {
 public:
  struct Parts {
    AddedTokens raw = {};             ///< found in the text as it is
    TextNormalizer normalizer = {};   ///< of the parts between
    AddedTokens normalized = {};      ///< found in these
    PreTokenizer pre_tokenizer = {};  ///< of what is left
    std::unique_ptr<WordModel> model = {};
    std::vector<std::uint32_t> before = {};  ///< stand before each text
    std::vector<std::uint32_t> behind = {};
    std::unordered_map<std::uint32_t, std::string> texts = {};  ///< the bytes of each token
  };
  explicit TextTokenizer(Parts parts);

  std::int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::uint32_t> encode(std::string_view text) const override;
  std::string text_of(std::uint32_t token) const override;

 private:
  Parts parts_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace lockstep::data
