// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"

// Checks of the single values of an option struct, by the list of its fields.
namespace lockstep {

inline std::string path_of(Names names) {
  return names == Names::kFolder ? "the path of a folder" : "the path of a file";
}

/// "the number of samples", "the path of a file"
template <class Field>
std::string what_is_required(const Field& field) {
  return field.what.empty() ? path_of(field.names) : std::string(field.what);
}

/// Why a shape of so many extents cannot be; empty where it can.
inline std::string problem_of_ranks(int count, Ranks ranks) {
  if (count >= ranks.least && count <= ranks.most) return {};
  const bool one = ranks.least == ranks.most;
  return std::string("must be of ") + (one ? "" : "at most ") + std::to_string(ranks.most) +
         (ranks.most == 1 ? " extent" : " extents") + ", is " + std::to_string(count);
}

/// Whether nothing is given: no text, no element of a list, no extent.
template <class Value>
bool is_absent(const Value& value) {
  if constexpr (List<Value> || std::same_as<Value, std::string>) {
    return value.empty();
  } else if constexpr (ShapeLike<Value>) {
    return value.rank() == 0;
  } else {
    return false;
  }
}

/// Checks the values of an option struct against the bounds of its fields, those inside of it too. `at` stands before
/// their names: "group[1].".
template <Described Options>
void check_fields(const Options& options, FieldChecks& checks, const std::string& at = {});

template <class Field, class Value>
void check_value(const Value& value, const Field& field, FieldChecks& checks, const std::string& name) {
  if constexpr (Optional<Value>) {
    if (value) check_value(*value, field, checks, name);
  } else if constexpr (List<Value>) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string element = name + "[" + std::to_string(i) + "]";
      if (field.names != Names::kNothing && is_absent(value[i])) {
        checks.error(element, "is required: " + path_of(field.names));
      } else {
        check_value(value[i], field, checks, element);
      }
    }
  } else if constexpr (ShapeLike<Value>) {
    const std::string problem = field.ranks ? problem_of_ranks(value.rank(), *field.ranks) : std::string();
    if (!problem.empty()) checks.error(name, problem);
    for (int d = 0; d < value.rank(); ++d) {
      checks.at_least_one(static_cast<double>(value[d]), name + "[" + std::to_string(d) + "]");
    }
  } else if constexpr (Described<Value>) {
    check_fields(value, checks, name + ".");
  } else if constexpr (std::is_arithmetic_v<Value>) {
    if (!field.bound) return;
    const double number = static_cast<double>(value);
    checks.check(field.bound->holds(number), name, field.bound->rule, number);
  }
}

template <Described Options>
void check_fields(const Options& options, FieldChecks& checks, const std::string& at) {
  for_each_field<Options>([&](const auto& field) {
    const auto& value = options.*field.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    const std::string name = at + std::string(field.name);
    if (field.otherwise == Otherwise::kRequired && is_absent(value)) {
      checks.error(name, "is required: " + what_is_required(field));
      return;
    }
    if constexpr (std::is_arithmetic_v<Value>) {
      // The struct's own value stands for an absent one: it has no bound.
      if (field.otherwise == Otherwise::kFollows && value == Options().*field.member) return;
    }
    check_value(value, field, checks, name);
  });
}

/// All that is wrong with the single values.
template <Described Options>
FieldProblems problems_in_fields(const Options& options) {
  FieldChecks checks;
  check_fields(options, checks);
  return checks.problems();
}

}  // namespace lockstep
