// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "runtime/job/diagnostic.h"
#include "runtime/job/tokens.h"

namespace lockstep::job {

/// Reads protobuf text into a message and goes on behind every error, so that one run names them all. (Protobuf's own
/// parser stops at the first one.) Unknown fields are answered with the nearest name, values of a wrong kind with what
/// is expected.
class TextReader {
 public:
  TextReader(std::string_view text, std::string source, Locations& locations, Diagnostics& diagnostics);

  /// Reads the whole text as the fields of `message`, whose path is `path`.
  void read_message(google::protobuf::Message& message, const std::string& path);
  /// Reads the whole text as the value of one field: a scalar, `{ ... }`, or `[...]` for a repeated field.
  void read_value(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                  const std::string& path);
  /// Whether braces or characters were wrong, so that the fields read may not be those that were meant.
  bool broken() const { return broken_; }

 private:
  using Message = google::protobuf::Message;
  using FieldDescriptor = google::protobuf::FieldDescriptor;

  void read_fields(Message& message, const std::string& path, const Token* opening);
  void read_field(Message& message, const std::string& path);
  void read_elements(Message& message, const FieldDescriptor& field, const std::string& path);
  void read_one(Message& message, const FieldDescriptor& field, const std::string& path);
  void read_submessage(Message& message, const FieldDescriptor& field, const std::string& path);
  bool may_be_given(const Message& message, const FieldDescriptor& field, const std::string& path, const Token& name);
  void error(const Token& where, const std::string& path, const std::string& message);
  bool stopped() const { return tokens_.at_end() || diagnostics_.size() >= kMaxErrors; }
  Position position(const Token& token) const { return {source_, token.line, token.column}; }

  std::string source_;
  Locations& locations_;
  Diagnostics& diagnostics_;
  TextTokens tokens_;
  bool broken_ = false;
};

}  // namespace lockstep::job
