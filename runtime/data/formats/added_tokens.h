// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// A token that a text spells out, "<|endoftext|>".
struct AddedToken {
  std::string text;
  std::uint32_t number = 0;
  bool takes_left = false;   ///< spaces before it belong to it
  bool takes_right = false;  ///< and those behind it
};

/// Finds such tokens in a text: the leftmost, of those the longest.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// Calls the functions in the order of the text. Parts between tokens are not empty.
  void cut(std::string_view text, const std::function<void(std::string_view)>& on_text,
           const std::function<void(std::uint32_t)>& on_token) const;

 private:
  /// The longest token that the text has at `at`.
  const AddedToken* find_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<std::size_t>, 256> by_first_byte_;  ///< of tokens_, the longest first
};

}  // namespace lockstep::data
