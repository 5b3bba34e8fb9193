// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/pre_tokens.h"
#include "runtime/data/formats/tokenizer_part.h"

namespace lockstep::data {

/// Cuts a text into the pieces that no token leaves: the "pre_tokenizer" of a tokenizer.json.
class PreTokenizer {
 public:
  /// The whole text is one piece.
  PreTokenizer() = default;
  /// Cuts by a pattern alone, for a vocabulary of bytes.
  explicit PreTokenizer(CutPattern pattern);
  /// Throws StorageError that names a kind or a regular expression that is not built.
  explicit PreTokenizer(const TokenizerPart& part);

  using Emit = std::function<void(std::string_view)>;
  /// Calls `emit` with the pieces of a text in their order; none is empty. `first`: the text is the start of what is
  /// encoded.
  void cut(std::string_view text, bool first, const Emit& emit) const { run(0, text, first, emit); }

  /// Whether tokens are of bytes: pieces are to be taken as their bytes.
  bool byte_level() const { return byte_level_; }
  /// Whether it writes spaces as `mark`.
  bool marks_spaces_with(std::string_view mark) const { return space_mark_ == mark; }

 private:
  using Next = std::function<void(std::string_view, bool first)>;
  using Step = std::function<void(std::string_view, bool first, const Next&)>;
  void run(std::size_t step, std::string_view text, bool first, const Emit& emit) const;
  void add(const TokenizerPart& part);
  void add_split(const TokenizerPart& part);
  void add_metaspace(const TokenizerPart& part);

  std::vector<Step> steps_;
  bool byte_level_ = false;
  std::string space_mark_;
};

}  // namespace lockstep::data
