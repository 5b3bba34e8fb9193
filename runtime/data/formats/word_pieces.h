// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "runtime/data/formats/word_model.h"

namespace lockstep::data {

struct WordPiecesRules {
  std::uint32_t unknown = 0;      ///< stands for a word of which a part is no token
  std::string continuing = "##";  ///< begins the tokens that do not begin a word
  std::size_t longest = 100;      ///< characters; a longer word is unknown
};

/// BERT's word pieces (github.com/google-research/bert, tokenization.py): the longest token that begins a word, then
/// the longest one behind it, and so on.
class WordPieces : public WordModel {
 public:
  WordPieces(TokenNumbers numbers, WordPiecesRules rules);

  void append(std::string_view word, std::vector<std::uint32_t>& tokens) const override;

 private:
  TokenNumbers numbers_;
  WordPiecesRules rules_;
};

}  // namespace lockstep::data
