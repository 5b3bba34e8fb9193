// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// An option struct describes itself: a static function fields() lists its fields, each once, with the name that jobs,
// errors and pages have for it. From the list come the checks of single values (option_checks.h), the lines by which
// ranks compare options (option_lines.h), and what runtime/job/ does with a job's message: the translation, the
// defaults that are written into it, what has to be given, and the paths that are made absolute and looked for.
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

/// Where an option has its value from if nobody gives one.
enum class Otherwise {
  kDefault,   ///< the struct's own
  kRequired,  ///< nowhere: it has to be given
  kFollows,   ///< from other options; or absence has a meaning, and the struct's own value stands for it
};

/// Makes an option one that has to be given.
struct Required {
  std::string_view what;  ///< as an error says it: "is required: WHAT"
};

/// The things in the file system that a text may name. A job counts such a path from its own folder.
enum class Names { kNothing, kFile, kFolder, kFilePattern };  ///< a pattern's braces name several files

/// How many extents a shape may have.
struct Ranks {
  int least;
  int most;
};

/// A member of an option struct.
template <class Options, class Value>
struct OptionField {
  std::string_view name;
  Value Options::*member;
  std::optional<Bound> bound = {};  ///< of a number, where it is given, and of each number of a list
  Otherwise otherwise = Otherwise::kDefault;
  std::string_view what = {};  ///< Required::what
  Names names = Names::kNothing;
  std::optional<Ranks> ranks = {};

  constexpr void set(const Bound& of) { bound = of; }
  constexpr void set(Otherwise of) { otherwise = of; }
  constexpr void set(Names of) { names = of; }
  constexpr void set(Ranks of) { ranks = of; }
  constexpr void set(Required of) {
    otherwise = Otherwise::kRequired;
    what = of.what;
  }
};

/// `traits`, in any order: a Bound, an Otherwise, Required, Names, Ranks.
template <class Options, class Value, class... Traits>
constexpr OptionField<Options, Value> option(std::string_view name, Value Options::*member, Traits... traits) {
  OptionField<Options, Value> field{name, member};
  (field.set(traits), ...);
  return field;
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

/// A shape. Those that are none have rank 0.
template <class T>
concept ShapeLike = requires(const T& shape) {
  shape.rank();
  shape.numel();
  shape.extents();
};

}  // namespace lockstep
