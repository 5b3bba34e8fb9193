// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep::data {

// How GPT-2 cuts a text before it joins bytes to tokens: no token reaches over a cut. Its regular expression is
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// (Radford et al.: "Language models are unsupervised multitask learners", 2019, encoder.py).

/// The first byte of a text that begins no UTF-8 character; none where all of it is UTF-8.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// Where the piece that begins at byte `at` ends. `text` is UTF-8 and goes on at `at`.
std::size_t end_of_piece(std::string_view text, std::size_t at);

}  // namespace lockstep::data
