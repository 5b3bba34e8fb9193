// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/word_pieces.h"

#include <utility>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

WordPieces::WordPieces(TokenNumbers numbers, WordPiecesRules rules)
    : numbers_(std::move(numbers)), rules_(std::move(rules)) {}

void WordPieces::append(std::string_view word, std::vector<std::uint32_t>& tokens) const {
  std::vector<std::size_t> ends;  // of the characters
  for (std::size_t at = 0; at < word.size() && ends.size() <= rules_.longest;) {
    at += character_at(word, at).text.size();
    ends.push_back(at);
  }
  const std::size_t first = tokens.size();
  const auto give_up = [&] {
    tokens.resize(first);
    tokens.push_back(rules_.unknown);
  };
  if (ends.size() > rules_.longest) return give_up();
  for (std::size_t begin = 0, character = 0; begin < word.size();) {
    std::size_t last = ends.size();
    const std::string prefix = begin > 0 ? rules_.continuing : std::string();
    for (; last > character; --last) {
      const auto found = numbers_.find(prefix + std::string(word.substr(begin, ends[last - 1] - begin)));
      if (found == numbers_.end()) continue;
      tokens.push_back(found->second);
      break;
    }
    if (last == character) return give_up();
    begin = ends[last - 1];
    character = last;
  }
}

}  // namespace lockstep::data
