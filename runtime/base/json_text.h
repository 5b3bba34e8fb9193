// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// JSON of files that others may have written.

namespace lockstep {

/// The library parses without recursion, but copies, compares and prints with it: a text of 200 KB that nests 100,000
/// levels deep would overflow the stack there.
inline constexpr std::size_t kMostJsonLevels = 64;

/// The value that a text holds; a discarded one where it is no JSON or nests deeper than kMostJsonLevels.
nlohmann::json parse_json(std::string_view text);
/// The same, with the fields of objects in their order. A text of many fields takes quadratic time.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// The field of an object; null where it has none of that name, or `value` is no object.
const nlohmann::ordered_json& field_of(const nlohmann::ordered_json& value, std::string_view name);

/// The text by which a message shows a value: a number, or the kind of anything else, whose text may be long.
std::string shown(const nlohmann::json& value);

}  // namespace lockstep
