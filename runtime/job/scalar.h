// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/job/tokens.h"

namespace lockstep::job {

/// Reads one value for a scalar field and sets it, or appends it where the field is repeated. Returns what is wrong,
/// `expected a number, found "fast"`, and then leaves the field alone; an empty text means that it is set.
/// Behind an error the value is passed over.
std::string read_scalar(TextTokens& tokens, google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field);

/// Sets a text field from a text without quotes.
std::string set_text(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field,
                     const std::string& text);

/// Whether a text is UTF-8 without control characters other than tabs, fit for a binary job and for a path.
bool is_clean_utf8(std::string_view text);

/// The names an enum field may take in a job, the unset value left out.
std::vector<std::string> names_of(const google::protobuf::EnumDescriptor& type);

/// The error of a name that is none of the message's fields, with those that may be meant.
std::string unknown_field(const std::string& name, const google::protobuf::Descriptor& type);

}  // namespace lockstep::job
