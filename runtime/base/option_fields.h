// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/field_checks.h"

// An option struct describes itself: a static function fields() lists its fields, each once, with the name that jobs,
// errors and pages have for it. From the list come the checks of single values, the lines by which ranks compare
// options, the translation from a job's message, and the defaults that are written into one (runtime/job/).
namespace lockstep {

/// The numbers that an option may be. NaN and infinite ones are none of them.
struct Bound {
  std::string_view rule;  ///< as an error says it: "must be RULE"
  double low;
  bool above;  ///< low itself is none of them
  double high = std::numeric_limits<double>::max();
  bool below = false;  ///< high itself is none of them

  constexpr bool holds(double value) const {
    return (above ? value > low : value >= low) && (below ? value < high : value <= high);
  }
};
inline constexpr Bound kPositive{"> 0", 0, true};
inline constexpr Bound kNotNegative{">= 0", 0, false};
inline constexpr Bound kAtLeastOne{">= 1", 1, false};
inline constexpr Bound kFraction{">= 0 and < 1", 0, false, 1, true};
inline constexpr Bound kZeroToOne{"in [0, 1]", 0, false, 1, false};

/// Where the value of an option comes from that nobody gives.
enum class Otherwise {
  kDefault,   ///< the struct's own
  kRequired,  ///< nowhere: it has to be given
  kFollows,   ///< from others; or there is none, and that means something
};

/// A member of an option struct.
template <class Options, class Value>
struct OptionField {
  std::string_view name;
  Value Options::*member;
  std::optional<Bound> bound = {};  ///< of a number, where it is given, and of each number of a list
  Otherwise otherwise = Otherwise::kDefault;
};

template <class Options, class Value>
constexpr OptionField<Options, Value> option(std::string_view name, Value Options::*member,
                                             Otherwise otherwise = Otherwise::kDefault) {
  return {name, member, {}, otherwise};
}
template <class Options, class Value>
constexpr OptionField<Options, Value> option(std::string_view name, Value Options::*member, Bound bound,
                                             Otherwise otherwise = Otherwise::kDefault) {
  return {name, member, bound, otherwise};
}

/// A struct that lists its fields.
template <class T>
concept Described = requires {
  T::fields();
};

template <Described Options, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... fields) { (visit(fields), ...); }, Options::fields());
}

/// The names that jobs have for the values of an enumeration; specialised beside it, with
/// `static constexpr std::array kNames{std::pair{Enum::kOne, std::string_view("ONE")}, ...};`.
template <class Enum>
struct EnumNames;

template <class T>
concept Named = requires {
  EnumNames<T>::kNames;
};

template <Named Enum>
constexpr std::string_view job_name(Enum value) {
  for (const auto& [of, name] : EnumNames<Enum>::kNames) {
    if (of == value) return name;
  }
  return "?";
}

template <class T>
struct OptionalValue : std::false_type {};
template <class T>
struct OptionalValue<std::optional<T>> : std::true_type {};
template <class T>
concept Optional = OptionalValue<T>::value;

template <class T>
struct ListValue : std::false_type {};
template <class T>
struct ListValue<std::vector<T>> : std::true_type {};
template <class T>
concept List = ListValue<T>::value;

/// Checks the values of an option struct against the bounds of its fields, those inside of it too. `at` stands before
/// their names: "group[1].".
template <Described Options>
void check_fields(const Options& options, FieldChecks& checks, const std::string& at = {});

template <class Value>
void check_value(const Value& value, const std::optional<Bound>& bound, FieldChecks& checks, const std::string& name) {
  if constexpr (Optional<Value>) {
    if (value) check_value(*value, bound, checks, name);
  } else if constexpr (List<Value>) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      check_value(value[i], bound, checks, name + "[" + std::to_string(i) + "]");
    }
  } else if constexpr (Described<Value>) {
    check_fields(value, checks, name + ".");
  } else if constexpr (std::is_arithmetic_v<Value>) {
    if (!bound) return;
    const double number = static_cast<double>(value);
    checks.check(bound->holds(number), name, bound->rule, number);
  }
}

template <Described Options>
void check_fields(const Options& options, FieldChecks& checks, const std::string& at) {
  for_each_field<Options>([&](const auto& field) {
    check_value(options.*field.member, field.bound, checks, at + std::string(field.name));
  });
}

/// All that is wrong with the single values.
template <Described Options>
FieldProblems problems_in_fields(const Options& options) {
  FieldChecks checks;
  check_fields(options, checks);
  return checks.problems();
}

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
    } else {
      lines += name + ": " + text_of(value) + "\n";
    }
  };
  for_each_field<Options>([&](const auto& field) { add(add, at + std::string(field.name), options.*field.member); });
  return lines;
}

}  // namespace lockstep
