// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::data {

// How files of byte-level vocabularies write bytes as text (Radford et al.: "Language models are unsupervised multitask
// learners", 2019, encoder.py).

/// The character, in UTF-8, that stands for each byte: printable ones of Latin-1 for themselves, the others are
/// characters from U+0100 on.
const std::array<std::string, 256>& byte_names();

/// The bytes that `names` stands for; none where it has a character that stands for no byte.
std::optional<std::string> bytes_of_names(std::string_view names);

}  // namespace lockstep::data
