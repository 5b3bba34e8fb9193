// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/text_reader.h"

#include <google/protobuf/descriptor.h>

#include "runtime/job/scalar.h"

namespace lockstep::job {

namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string found(const Token& token) {
  return token.type == TokenType::TYPE_END ? "the end of the text" : quoted(token.text);
}

bool is_message(const google::protobuf::FieldDescriptor& field) {
  return field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
}

}  // namespace

TextReader::TextReader(std::string_view text, std::string source, Locations& locations, Diagnostics& diagnostics)
    : source_(std::move(source)),
      locations_(locations),
      diagnostics_(diagnostics),
      tokens_(text, source_, diagnostics),
      broken_(!diagnostics.empty()) {}

void TextReader::read_message(Message& message, const std::string& path) { read_fields(message, path, nullptr); }

void TextReader::read_value(Message& message, const FieldDescriptor& field, const std::string& path) {
  if (field.is_repeated() && tokens_.at("[")) {
    read_elements(message, field, path);
  } else {
    read_one(message, field, path);
  }
  if (!stopped()) error(tokens_.peek(), path, "unexpected " + found(tokens_.peek()) + " behind the value");
}

void TextReader::read_fields(Message& message, const std::string& path, const Token* opening) {
  const std::string closing = opening == nullptr ? "" : opening->text == "{" ? "}" : ">";
  while (!stopped()) {
    if (tokens_.at("}") || tokens_.at(">")) {
      const Token& token = tokens_.take();
      if (token.text != closing) {
        broken_ = true;
        error(token, path, "unexpected " + quoted(token.text));
      }
      if (opening != nullptr) return;
    } else if (tokens_.peek().type == TokenType::TYPE_IDENTIFIER) {
      read_field(message, path);
      if (!tokens_.take_if(",")) tokens_.take_if(";");
    } else {
      error(tokens_.peek(), path, "expected a field's name, found " + found(tokens_.peek()));
      broken_ = true;
      tokens_.take();
    }
  }
  // Names the innermost of several open braces.
  if (opening != nullptr && tokens_.at_end() && !broken_) {
    broken_ = true;
    error(*opening, path, quoted(opening->text) + " is never closed");
  }
}

void TextReader::read_field(Message& message, const std::string& parent) {
  const Token& name = tokens_.take();
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name.text);
  if (field == nullptr) {
    error(name, parent, unknown_field(name.text, *message.GetDescriptor()));
    return tokens_.skip_value();
  }
  const std::string path = join_path(parent, name.text);
  if (!may_be_given(message, *field, path, name)) return tokens_.skip_value();
  if (!locations_.contains(path)) locations_.record(path, position(name));
  const bool colon = tokens_.take_if(":");
  if (!colon && !is_message(*field)) {
    error(name, path, "expected ':' and a value, found " + found(tokens_.peek()));
    return tokens_.skip_value();
  }
  if (field->is_repeated() && tokens_.at("[")) {
    read_elements(message, *field, path);
  } else {
    read_one(message, *field, path);
  }
}

bool TextReader::may_be_given(const Message& message, const FieldDescriptor& field, const std::string& path,
                              const Token& name) {
  if (field.is_repeated()) return true;
  if (locations_.contains(path)) {
    error(name, path, "is given twice; first at " + locations_.find(path).str());
    return false;
  }
  const auto* oneof = field.real_containing_oneof();
  if (oneof != nullptr && message.GetReflection()->HasOneof(message, oneof)) {
    const auto* other = message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
    error(name, path, "cannot stand beside " + quoted(other->name()) + ": only one of them can be used");
    return false;
  }
  return true;
}

void TextReader::read_elements(Message& message, const FieldDescriptor& field, const std::string& path) {
  const Token& opening = tokens_.take();
  if (tokens_.take_if("]")) return;
  while (!stopped()) {
    read_one(message, field, path);
    if (tokens_.take_if("]")) return;
    if (!tokens_.take_if(",")) {
      error(tokens_.peek(), path, "expected ',' or ']', found " + found(tokens_.peek()));
      while (!stopped() && !tokens_.take_if("]")) tokens_.take();
      return;
    }
  }
  broken_ = true;
  error(opening, path, "\"[\" is never closed");
}

void TextReader::read_one(Message& message, const FieldDescriptor& field, const std::string& path) {
  const int index = field.is_repeated() ? message.GetReflection()->FieldSize(message, &field) : 0;
  const std::string element = field.is_repeated() ? element_path(path, index) : path;
  const Token& first = tokens_.peek();
  if (field.is_repeated()) locations_.record(element, position(first));
  if (is_message(field)) return read_submessage(message, field, element);
  const std::string wrong = read_scalar(tokens_, message, field);
  if (!wrong.empty()) error(first, element, wrong);
}

void TextReader::read_submessage(Message& message, const FieldDescriptor& field, const std::string& path) {
  const Token& opening = tokens_.peek();
  if (!tokens_.at("{") && !tokens_.at("<")) {
    error(opening, path, "expected { ... }, found " + found(opening));
    return tokens_.skip_value();
  }
  tokens_.take();
  const auto* reflection = message.GetReflection();
  read_fields(
      field.is_repeated() ? *reflection->AddMessage(&message, &field) : *reflection->MutableMessage(&message, &field),
      path, &opening);
}

void TextReader::error(const Token& where, const std::string& path, const std::string& message) {
  if (diagnostics_.size() < kMaxErrors) diagnostics_.emplace_back(position(where), path, message);
}

}  // namespace lockstep::job
