// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/message_options.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::job {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

/// A number beyond the other type's range is a limit that nothing reaches.
std::int64_t limit_of(std::uint64_t number) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(number, kMost));
}

}  // namespace

const FieldDescriptor& field_of(const Message& message, std::string_view name) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(std::string(name));
  if (field == nullptr) {
    throw std::logic_error("a job's " + message.GetDescriptor()->name() + " has no field " + std::string(name));
  }
  return *field;
}

bool has_value(const Message& message, const FieldDescriptor& field) {
  // The first value of an enumeration is that of no value, and so is a text of no letters.
  const bool tells = field.has_presence() || field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM ||
                     field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return !tells || message.GetReflection()->HasField(message, &field);
}

double number_in(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    return index < 0 ? of.GetDouble(message, &field) : of.GetRepeatedDouble(message, &field, index);
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    return static_cast<double>(index < 0 ? of.GetFloat(message, &field) : of.GetRepeatedFloat(message, &field, index));
  }
  return static_cast<double>(integer_in(message, field, index));
}

std::int64_t integer_in(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  const bool single = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return single ? of.GetBool(message, &field) : of.GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT32:
      return single ? of.GetInt32(message, &field) : of.GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return single ? of.GetUInt32(message, &field) : of.GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return single ? of.GetInt64(message, &field) : of.GetRepeatedInt64(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return limit_of(single ? of.GetUInt64(message, &field) : of.GetRepeatedUInt64(message, &field, index));
    default:
      throw std::logic_error("a job's field " + field.full_name() + " is no whole number");
  }
}

std::string text_in(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  return index < 0 ? of.GetString(message, &field) : of.GetRepeatedString(message, &field, index);
}

std::string enum_name_in(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  const int value = index < 0 ? of.GetEnumValue(message, &field) : of.GetRepeatedEnumValue(message, &field, index);
  const auto* const known = field.enum_type()->FindValueByNumber(value);
  return known == nullptr ? std::string() : known->name();
}

const Message& message_in(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& of = *message.GetReflection();
  return index < 0 ? of.GetMessage(message, &field) : of.GetRepeatedMessage(message, &field, index);
}

std::optional<Shape> extents_in(const Message& message, const FieldDescriptor& field) {
  const int count = message.GetReflection()->FieldSize(message, &field);
  if (count == 0 || count > Shape::kMaxRank) return {};
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  for (int i = 0; i < count; ++i) {
    extents.push_back(integer_in(message, field, i));
    if (__builtin_mul_overflow(elements, extents.back(), &elements)) return {};
  }
  return Shape(std::span<const std::int64_t>(extents));
}

std::string problem_of_extents(const Message& message, const FieldDescriptor& field) {
  const int count = message.GetReflection()->FieldSize(message, &field);
  if (count == 0 || extents_in(message, field)) return {};
  if (count > Shape::kMaxRank) return "must be of at most " + std::to_string(Shape::kMaxRank) + " extents";
  return "has more elements than can be counted";
}

void give_text(Message& message, const FieldDescriptor& field, const std::string& value) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return message.GetReflection()->SetString(&message, &field, value);
  }
  if (!google::protobuf::TextFormat::ParseFieldValueFromString(value, &field, &message)) {
    throw std::logic_error("a job's field " + field.full_name() + " cannot be " + value);
  }
}

const FieldDescriptor* kind_of(const Message& message) {
  return message.GetReflection()->GetOneofFieldDescriptor(message, message.GetDescriptor()->FindOneofByName("kind"));
}

std::string kinds_of(const Descriptor& type) {
  std::string names;
  const auto* const kind = type.FindOneofByName("kind");
  for (int i = 0; i < kind->field_count(); ++i) names += (names.empty() ? "" : ", ") + kind->field(i)->name();
  return names;
}

void throw_no_kind(const Descriptor& type, const std::string& path) {
  throw FieldError(path, "names no kind", "Name one of " + kinds_of(type) + ".");
}

}  // namespace lockstep::job
