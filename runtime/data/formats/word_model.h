// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

/// Looks texts up without a copy.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TokenNumbers = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

/// Cuts the pieces of a text into tokens.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// `word` is not empty. Throws StorageError for a character that no token stands for.
  virtual void append(std::string_view word, std::vector<std::uint32_t>& tokens) const = 0;
};

}  // namespace lockstep::data
