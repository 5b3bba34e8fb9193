// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/scalar.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/base/nearest.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::Tokenizer;

/// Sets or appends: reflection has two functions for each type.
#define LOCKSTEP_ASSIGN(Type, value)                                                 \
  (field.is_repeated() ? message.GetReflection()->Add##Type(&message, &field, value) \
                       : message.GetReflection()->Set##Type(&message, &field, value))

std::string largest_of(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? std::to_string(std::numeric_limits<std::uint32_t>::max())
             : std::to_string(std::numeric_limits<std::uint64_t>::max());
}

std::string expectation(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0 to " + largest_of(field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_ENUM:
      return fmt::format("one of {}", fmt::join(names_of(*field.enum_type()), ", "));
    default:
      return "a number";
  }
}

struct Literal {
  bool negative = false;
  TokenType type = TokenType::TYPE_END;
  std::string text;

  std::string str() const { return (negative ? "-" : "") + (type == TokenType::TYPE_END ? "the end" : text); }
};

std::optional<std::uint64_t> whole_number(const Literal& literal, std::uint64_t largest) {
  std::uint64_t value = 0;
  if (literal.type != TokenType::TYPE_INTEGER || !Tokenizer::ParseInteger(literal.text, largest, &value)) return {};
  if (literal.negative && value != 0) return {};
  return value;
}

std::optional<double> number(const Literal& literal) {
  double value = 0;
  if (literal.type == TokenType::TYPE_FLOAT || literal.type == TokenType::TYPE_INTEGER) {
    std::uint64_t integer = 0;
    const bool whole = literal.type == TokenType::TYPE_INTEGER &&
                       Tokenizer::ParseInteger(literal.text, std::numeric_limits<std::uint64_t>::max(), &integer);
    value = whole ? static_cast<double>(integer) : Tokenizer::ParseFloat(literal.text);
  } else if (literal.text == "inf" || literal.text == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (literal.text == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    return {};
  }
  return literal.negative ? -value : value;
}

/// A double past float's range becomes infinite; the conversion by itself would be undefined.
float to_float(double value) {
  if (std::abs(value) <= std::numeric_limits<float>::max() || !std::isfinite(value)) return static_cast<float>(value);
  return value > 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
}

std::optional<bool> truth(const Literal& literal) {
  if (literal.negative || literal.type == TokenType::TYPE_STRING) return {};
  if (literal.text == "true" || literal.text == "t" || literal.text == "True" || literal.text == "1") return true;
  if (literal.text == "false" || literal.text == "f" || literal.text == "False" || literal.text == "0") return false;
  return {};
}

/// Sets the field from a literal that is no text; false when the literal is of another kind.
bool assign(Message& message, const FieldDescriptor& field, const Literal& literal) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = whole_number(literal, std::numeric_limits<std::uint32_t>::max());
      if (value) LOCKSTEP_ASSIGN(UInt32, static_cast<std::uint32_t>(*value));
      return value.has_value();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = whole_number(literal, std::numeric_limits<std::uint64_t>::max());
      if (value) LOCKSTEP_ASSIGN(UInt64, *value);
      return value.has_value();
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = number(literal);
      if (value) LOCKSTEP_ASSIGN(Float, to_float(*value));
      return value.has_value();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const auto value = number(literal);
      if (value) LOCKSTEP_ASSIGN(Double, *value);
      return value.has_value();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      const auto value = truth(literal);
      if (value) LOCKSTEP_ASSIGN(Bool, *value);
      return value.has_value();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = literal.negative ? nullptr : field.enum_type()->FindValueByName(literal.text);
      if (value != nullptr) LOCKSTEP_ASSIGN(EnumValue, value->number());
      return value != nullptr;
    }
    default:
      return false;
  }
}

}  // namespace

bool is_clean_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    // A tab separates the cells of some tables.
    if (length == 0 || (lead < 0x20 && lead != '\t') || lead == 0x7F || i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    }
    // Overlong forms, surrogates and numbers past U+10FFFF begin with these pairs.
    const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return false;
    if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return false;
    i += length;
  }
  return true;
}

std::string set_text(Message& message, const FieldDescriptor& field, const std::string& text) {
  if (!is_clean_utf8(text)) return "expected UTF-8 text without control characters other than tabs";
  LOCKSTEP_ASSIGN(String, text);
  return {};
}

std::string read_scalar(TextTokens& tokens, Message& message, const FieldDescriptor& field) {
  const bool is_text = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (is_text && tokens.peek().type == TokenType::TYPE_STRING) {
    std::string text;
    while (tokens.peek().type == TokenType::TYPE_STRING) Tokenizer::ParseStringAppend(tokens.take().text, &text);
    return set_text(message, field, text);
  }
  const std::size_t sign = tokens.at("-") ? 1 : 0;
  const Literal literal{sign == 1, tokens.peek(sign).type, tokens.peek(sign).text};
  if (literal.type != TokenType::TYPE_SYMBOL && literal.type != TokenType::TYPE_END && !tokens.at(":", sign + 1) &&
      assign(message, field, literal)) {
    if (sign == 1) tokens.take();
    tokens.take();
    return {};
  }
  tokens.skip_value();
  std::string wrong = "expected " + expectation(field) + ", found " + literal.str();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const std::string best = nearest(literal.text, names_of(*field.enum_type()));
    if (!best.empty()) wrong += "; did you mean " + best + "?";
  }
  return wrong;
}

#undef LOCKSTEP_ASSIGN

std::vector<std::string> names_of(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(type.value(i)->name());
  }
  return names;
}

std::string unknown_field(const std::string& name, const google::protobuf::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return fmt::format("unknown field \"{}\"; {}", name, suggestion(name, names, "docs/job.md lists them"));
}

}  // namespace lockstep::job
