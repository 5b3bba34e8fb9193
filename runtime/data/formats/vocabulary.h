// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/data/formats/tokenizer_part.h"
#include "runtime/data/formats/word_model.h"

namespace lockstep::data {

// Vocabularies as files write them.

/// An object of tokens' texts and numbers. Throws StorageError with `advice` for anything else, and for two tokens of
/// one number.
TokenNumbers read_numbers(const TokenizerPart& vocabulary, const std::string& advice = {});

/// The two tokens of a line "LEFT RIGHT"; none where it has not two.
std::optional<std::pair<std::string, std::string>> pair_of(std::string_view line);

/// Of a byte-level vocabulary: numbers by the tokens' bytes. Tokens whose text stands for no bytes are left out.
TokenNumbers numbers_by_bytes(const TokenNumbers& numbers);
/// The bytes by number. A token whose text stands for no bytes is its text.
std::unordered_map<std::uint32_t, std::string> texts_of_byte_level(const TokenNumbers& numbers);

}  // namespace lockstep::data
