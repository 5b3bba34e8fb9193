// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::data {

// Characters of Unicode, as utf8proc knows them. A character that was assigned in a later version than the library's is
// no letter, number or mark here.

enum class CharacterKind { kLetter, kNumber, kSpace, kOther };  ///< \p{L}, \p{N}, \s of regular expressions

struct Character {
  std::int32_t code = 0;       ///< -1 for a byte that begins no character
  std::string_view text = {};  ///< its bytes
};

/// The character at byte `at` of a text, which goes on there.
Character character_at(std::string_view text, std::size_t at);
CharacterKind character_kind(std::int32_t code);
bool is_space(std::int32_t code);        ///< the property White_Space
bool is_punctuation(std::int32_t code);  ///< ASCII's, and \p{P}
bool is_mark(std::int32_t code);         ///< \p{M}
bool is_nonspacing(std::int32_t code);   ///< \p{Mn}
bool is_other(std::int32_t code);        ///< \p{Cc}, \p{Cf}, \p{Co}: controls, format characters, private use

/// The lower case of a character, without regard to its neighbours, in UTF-8.
std::string lower_case(std::int32_t code);
/// A character in UTF-8.
std::string utf8_of(std::int32_t code);

/// The first byte of a text that begins no UTF-8 character; none where all of it is UTF-8.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Unicode's normalization forms.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normal_form(std::string_view text, NormalForm form);

/// The text with each character replaced by what `change` returns.
std::string map_characters(std::string_view text, const std::function<std::string(const Character&)>& change);

}  // namespace lockstep::data
