// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

// The values of an option struct as text.
namespace lockstep {

template <class Value>
std::string text_of(const Value& value) {
  if constexpr (std::same_as<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::floating_point<Value>) {
    return shortest_text(static_cast<double>(value));
  } else if constexpr (std::integral<Value>) {
    return std::to_string(value);
  } else if constexpr (Named<Value>) {
    return std::string(job_name(value));
  } else {
    return std::string(value);
  }
}

/// A line a value, "init: 65536\n", by which ranks compare their options. An option without a value is "default".
template <Described Options>
std::string lines_of(const Options& options, const std::string& at = {}) {
  std::string lines;
  const auto add = [&lines](const auto& self, const std::string& name, const auto& value) -> void {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (Optional<Value>) {
      if (value) {
        self(self, name, *value);
      } else {
        lines += name + ": default\n";
      }
    } else if constexpr (List<Value>) {
      for (std::size_t i = 0; i < value.size(); ++i) self(self, name + "[" + std::to_string(i) + "]", value[i]);
    } else if constexpr (Described<Value>) {
      lines += lines_of(value, name + ".");
    } else if constexpr (ShapeLike<Value>) {
      lines += name + ": " + value.str() + "\n";
    } else {
      lines += name + ": " + text_of(value) + "\n";
    }
  };
  for_each_field<Options>([&](const auto& field) { add(add, at + std::string(field.name), options.*field.member); });
  return lines;
}

}  // namespace lockstep
