// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/added_tokens.h"

#include <algorithm>
#include <utility>

#include "runtime/data/formats/characters.h"

namespace lockstep::data {

namespace {

std::size_t first_of_spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    std::size_t before = at - 1;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xc0) == 0x80) --before;
    if (!is_space(character_at(text, before).code)) break;
    at = before;
  }
  return at;
}

std::size_t end_of_spaces_from(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (!is_space(next.code)) break;
    at += next.text.size();
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (tokens_[i].text.empty()) continue;
    by_first_byte_[static_cast<unsigned char>(tokens_[i].text[0])].push_back(i);
  }
  const auto longer = [this](std::size_t a, std::size_t b) { return tokens_[a].text.size() > tokens_[b].text.size(); };
  for (std::vector<std::size_t>& some : by_first_byte_) std::ranges::stable_sort(some, longer);
}

const AddedToken* AddedTokens::find_at(std::string_view text, std::size_t at) const {
  for (const std::size_t i : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    if (text.substr(at).starts_with(tokens_[i].text)) return &tokens_[i];
  }
  return nullptr;
}

void AddedTokens::cut(std::string_view text, const std::function<void(std::string_view)>& on_text,
                      const std::function<void(std::uint32_t)>& on_token) const {
  std::size_t done = 0;  // up to here the text is given out
  const auto give = [&](std::size_t end) {
    if (end > done) on_text(text.substr(done, end - done));
  };
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* const token = find_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const std::size_t begin = token->takes_left ? first_of_spaces_before(text, at) : at;
    at += token->text.size();
    give(begin);
    on_token(token->number);
    done = std::max(done, token->takes_right ? end_of_spaces_from(text, at) : at);
  }
  give(text.size());
}

}  // namespace lockstep::data
