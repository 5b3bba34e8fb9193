// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

/// A value within a tokenizer.json that knows where it stands: its errors are StorageErrors that say
/// "tokenizer.json: pre_tokenizer.pretokenizers[0]: ...".
class TokenizerPart {
 public:
  /// `value` outlives the part.
  TokenizerPart(const nlohmann::json& value, std::string file, std::string path);

  const nlohmann::json& value() const { return *value_; }
  /// Whether it is null or not there.
  bool absent() const { return value_->is_null(); }
  /// A field; an absent part where there is none of that name. Throws where the value is no object.
  TokenizerPart operator[](std::string_view name) const;
  /// The elements of a list; none of an absent one.
  std::vector<TokenizerPart> items() const;

  std::string text() const;
  bool flag(bool otherwise) const;  ///< `otherwise` where it is absent
  std::optional<std::uint32_t> number() const;

  [[noreturn]] void refuse(const std::string& why, const std::string& advice = {}) const;
  /// Says that a kind is not built, and which are.
  [[noreturn]] void refuse_kind(const std::string& kind, std::string_view built) const;

 private:
  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace lockstep::data
