// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/json_text.h"

#include <nlohmann/json.hpp>

namespace lockstep {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Right for every text that the parser accepts, and for what it accepts before it refuses the rest.
bool nests_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostJsonLevels) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

template <class Json>
Json parse(std::string_view text) {
  if (nests_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

json parse_json(std::string_view text) { return parse<json>(text); }

ordered_json parse_ordered_json(std::string_view text) { return parse<ordered_json>(text); }

const ordered_json& field_of(const ordered_json& value, std::string_view name) {
  static const ordered_json kNone;
  const auto found = value.find(name);
  return found == value.end() ? kNone : *found;
}

std::string shown(const json& value) { return value.is_number() ? value.dump() : value.type_name(); }

}  // namespace lockstep
