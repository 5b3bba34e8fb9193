// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/tokenizer_part.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace lockstep::data {

namespace {

const nlohmann::json kNull;

}  // namespace

TokenizerPart::TokenizerPart(const nlohmann::json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

TokenizerPart TokenizerPart::operator[](std::string_view name) const {
  const std::string path = path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  if (!value_->is_object()) refuse(fmt::format("is {}, expected an object", shown(*value_)));
  const auto found = value_->find(name);
  return {found == value_->end() ? kNull : *found, file_, path};
}

std::vector<TokenizerPart> TokenizerPart::items() const {
  std::vector<TokenizerPart> items;
  if (absent()) return items;
  if (!value_->is_array()) refuse(fmt::format("is {}, expected a list", shown(*value_)));
  for (const nlohmann::json& item : *value_) {
    items.emplace_back(item, file_, fmt::format("{}[{}]", path_, items.size()));
  }
  return items;
}

std::string TokenizerPart::text() const {
  if (!value_->is_string()) refuse(fmt::format("is {}, expected a text", shown(*value_)));
  return value_->get<std::string>();
}

bool TokenizerPart::flag(bool otherwise) const {
  if (absent()) return otherwise;
  if (!value_->is_boolean()) refuse(fmt::format("is {}, expected true or false", shown(*value_)));
  return value_->get<bool>();
}

std::optional<std::uint32_t> TokenizerPart::number() const {
  if (absent()) return std::nullopt;
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max()) {
    refuse(fmt::format("is {}, expected a whole number from 0 on", shown(*value_)));
  }
  return value_->get<std::uint32_t>();
}

void TokenizerPart::refuse(const std::string& why, const std::string& advice) const {
  throw StorageError(fmt::format("{}: {}{}", file_, path_.empty() ? "" : path_ + " ", why), advice);
}

void TokenizerPart::refuse_kind(const std::string& kind, std::string_view built) const {
  refuse(fmt::format("names \"{}\", which is not built", kind), fmt::format("Built are {}.", built));
}

}  // namespace lockstep::data
