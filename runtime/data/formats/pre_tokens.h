// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep::data {

/// How a tokenizer cuts a text before it joins bytes to tokens: no token reaches over a cut. Its file has a regular
/// expression for it; these are known, and cut_pattern() tells them by their text.
enum class CutPattern {
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  /// (Radford et al.: "Language models are unsupervised multitask learners", 2019, encoder.py)
  kGpt2,
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
  /// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kLlama3,
  kQwen2,  ///< the same with \p{N} for \p{N}{1,3}
};

/// None for a regular expression that is not built.
std::optional<CutPattern> cut_pattern(std::string_view regular_expression);

/// Where the piece that begins at byte `at` ends. `text` is UTF-8 and goes on at `at`.
std::size_t end_of_piece(CutPattern pattern, std::string_view text, std::size_t at);

}  // namespace lockstep::data
