// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "runtime/base/option_fields.h"

namespace lockstep::model_zoo {

template <Described Options>
nlohmann::ordered_json option_values(const Options& options);

/// A value of an option as JSON: null for an absent one, the name that jobs have for one of an enumeration.
template <class Value>
nlohmann::ordered_json option_value(const Value& value) {
  if constexpr (Optional<Value>) {
    return value ? option_value(*value) : nlohmann::ordered_json();
  } else if constexpr (Described<Value>) {
    return option_values(value);
  } else if constexpr (Named<Value>) {
    return std::string(job_name(value));
  } else if constexpr (List<Value>) {
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (const auto& each : value) values.push_back(option_value(each));
    return values;
  } else {
    return value;
  }
}

/// All fields of an option struct by their names, as an object.
template <Described Options>
nlohmann::ordered_json option_values(const Options& options) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for_each_field<Options>(
      [&](const auto& field) { values[std::string(field.name)] = option_value(options.*field.member); });
  return values;
}

}  // namespace lockstep::model_zoo
