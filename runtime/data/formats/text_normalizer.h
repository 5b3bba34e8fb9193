// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/tokenizer_part.h"

namespace lockstep::data {

/// What a tokenizer changes in a text before it cuts it: the "normalizer" of a tokenizer.json.
class TextNormalizer {
 public:
  TextNormalizer() = default;
  /// Of an absent part nothing is changed. Throws StorageError that names a normalizer that is not built.
  explicit TextNormalizer(const TokenizerPart& part);

  std::string apply(std::string_view text) const;
  bool changes_nothing() const { return steps_.empty(); }
  /// Whether it writes spaces as `mark`.
  bool marks_spaces_with(std::string_view mark) const { return space_mark_ == mark; }

 private:
  using Step = std::function<std::string(std::string_view)>;
  void add(const TokenizerPart& part);

  std::vector<Step> steps_;
  std::string space_mark_;
};

}  // namespace lockstep::data
