// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "runtime/base/option_fields.h"
#include "runtime/base/option_lines.h"
#include "runtime/tensor/shape.h"

// Messages of a job and the option structs that describe themselves: a field and an option of one name are one.
namespace lockstep::job {

/// The field of that name. Throws std::logic_error where the message has none.
const google::protobuf::FieldDescriptor& field_of(const google::protobuf::Message& message, std::string_view name);
/// Whether the field was given a value: those that cannot tell have one.
bool has_value(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);

/// A value of a field, the one of number `index` of a list. Numbers are converted without a check.
double number_in(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int index);
std::int64_t integer_in(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                        int index);
std::string text_in(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                    int index);
/// The name of an enumeration's value; empty for a number that has none.
std::string enum_name_in(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                         int index);
const google::protobuf::Message& message_in(const google::protobuf::Message& message,
                                            const google::protobuf::FieldDescriptor& field, int index);

/// The shape with a list's extents; none where the list is empty or no shape can have such extents.
std::optional<Shape> extents_in(const google::protobuf::Message& message,
                                const google::protobuf::FieldDescriptor& field);
/// Says why a list of extents is no shape at all; empty where it is one, or has none.
std::string problem_of_extents(const google::protobuf::Message& message,
                               const google::protobuf::FieldDescriptor& field);
template <class Value>
concept IsShape = std::same_as<Value, Shape> || std::same_as<Value, std::optional<Shape>>;

/// Gives a singular field a value, by its text.
void give_text(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
               const std::string& value);

/// The kind that a message has set of the alternatives of its oneof "kind"; null where it has none.
const google::protobuf::FieldDescriptor* kind_of(const google::protobuf::Message& message);
/// "sgd, adam, adamw"
std::string kinds_of(const google::protobuf::Descriptor& type);
[[noreturn]] void throw_no_kind(const google::protobuf::Descriptor& type, const std::string& path);

/// Gives the options what the message says. Those of fields without a value stay as they are.
template <Described Options>
void take(const google::protobuf::Message& message, Options& options);

template <class Value>
void take_value(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int index,
                Value& value) {
  if constexpr (Optional<Value>) {
    take_value(message, field, index, value.emplace());
  } else if constexpr (Described<Value>) {
    take(message_in(message, field, index), value);
  } else if constexpr (Named<Value>) {
    const std::string name = enum_name_in(message, field, index);
    for (const auto& [of, known] : EnumNames<Value>::kNames) {
      if (known == name) value = of;
    }
  } else if constexpr (std::is_floating_point_v<Value>) {
    value = static_cast<Value>(number_in(message, field, index));
  } else if constexpr (std::is_integral_v<Value>) {
    value = static_cast<Value>(integer_in(message, field, index));
  } else {
    value = text_in(message, field, index);
  }
}

template <Described Options>
void take(const google::protobuf::Message& message, Options& options) {
  for_each_field<Options>([&](const auto& option) {
    const google::protobuf::FieldDescriptor& field = field_of(message, option.name);
    auto& value = options.*option.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (IsShape<Value>) {
      if (const std::optional<Shape> shape = extents_in(message, field)) value = *shape;
    } else if constexpr (List<Value>) {
      value.resize(static_cast<std::size_t>(message.GetReflection()->FieldSize(message, &field)));
      for (std::size_t i = 0; i < value.size(); ++i) take_value(message, field, static_cast<int>(i), value[i]);
    } else if (has_value(message, field)) {
      take_value(message, field, -1, value);
    }
  });
}

template <Described Options>
Options options_of(const google::protobuf::Message& message) {
  Options options;
  take(message, options);
  return options;
}

/// Calls `visit` with the type of each alternative.
template <class Variant, class Visit>
void for_each_alternative(Visit&& visit) {
  [&]<class... Kinds>(std::type_identity<std::variant<Kinds...>>) {
    (visit(std::type_identity<Kinds>()), ...);
  }(std::type_identity<Variant>());
}

/// The options of the kind that the message has set, one of the variant's alternatives. Throws FieldError of the field
/// `path` where it has set none, and std::logic_error for a kind that is no alternative.
template <class Variant>
Variant kind_options_of(const google::protobuf::Message& message, const std::string& path) {
  const google::protobuf::FieldDescriptor* const kind = kind_of(message);
  if (kind == nullptr) throw_no_kind(*message.GetDescriptor(), path);
  std::optional<Variant> options;
  for_each_alternative<Variant>([&]<class Options>(std::type_identity<Options>) {
    if (kind->name() == Options::kKind) options = options_of<Options>(message_in(message, *kind, -1));
  });
  if (!options) throw std::logic_error("no options stand for a job's " + kind->full_name());
  return *options;
}

/// Writes the defaults of the options into the fields without a value, but for those whose default follows from others.
template <Described Options>
void write_defaults(google::protobuf::Message& message) {
  const Options options;
  for_each_field<Options>([&](const auto& option) {
    if (option.otherwise != Otherwise::kDefault) return;
    const auto& value = options.*option.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (!List<Value> && !Optional<Value> && !Described<Value> && !IsShape<Value>) {
      const google::protobuf::FieldDescriptor& field = field_of(message, option.name);
      if (!has_value(message, field)) give_text(message, field, text_of(value));
    }
  });
}

/// Writes the values that follow from others, where the options know them, into the fields without one.
template <Described Options>
void write_followers(google::protobuf::Message& message) {
  if constexpr (requires(Options & options) { complete(options); }) {
    auto options = options_of<Options>(message);
    complete(options);
    for_each_field<Options>([&](const auto& option) {
      const auto& value = options.*option.member;
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
        const google::protobuf::FieldDescriptor& field = field_of(message, option.name);
        if (option.otherwise != Otherwise::kFollows || has_value(message, field)) return;
        if (value != Options().*option.member) give_text(message, field, text_of(value));
      }
    });
  }
}

}  // namespace lockstep::job
