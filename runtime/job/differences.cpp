// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/differences.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include "configs/job.pb.h"
#include "runtime/job/diagnostic.h"

namespace lockstep::job {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Values by path.
using Leaves = std::map<std::string, std::string>;

void collect(const Message& message, const std::string& path, Leaves& leaves);

/// `index` is -1 for a field that is no list.
void collect(const Message& message, const FieldDescriptor& field, int index, const std::string& path, Leaves& leaves) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const auto* reflection = message.GetReflection();
    return collect(
        index < 0 ? reflection->GetMessage(message, &field) : reflection->GetRepeatedMessage(message, &field, index),
        path, leaves);
  }
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, index, &leaves[path]);
}

/// A field of another version: its number is known, and its value but for the type. A repeated one has several values.
void collect(const google::protobuf::UnknownField& field, const std::string& path, Leaves& leaves) {
  google::protobuf::UnknownFieldSet alone;
  alone.AddField(field);
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintUnknownFieldsToString(alone, &text);
  while (text.ends_with(' ')) text.pop_back();
  std::string& leaf = leaves[join_path(path, "field " + std::to_string(field.number()))];
  leaf += (leaf.empty() ? "" : " ") + text;
}

void collect(const Message& message, const std::string& path, Leaves& leaves) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (fields.empty() && unknown.empty()) leaves[path] = "{}";
  for (int i = 0; i < unknown.field_count(); ++i) collect(unknown.field(i), path, leaves);
  for (const FieldDescriptor* field : fields) {
    const std::string name = join_path(path, field->name());
    if (!field->is_repeated()) {
      collect(message, *field, -1, name, leaves);
      continue;
    }
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      collect(message, *field, i, element_path(name, i), leaves);
    }
  }
}

std::string value(const Leaves& leaves, const std::string& path) {
  const auto found = leaves.find(path);
  return found == leaves.end() ? "(unset)" : found->second;
}

/// Whether the path is an empty message here and one with values there: those are what differs.
bool has_inside(const Leaves& leaves, const std::string& path) {
  const auto next = leaves.lower_bound(path + ".");
  return next != leaves.end() && next->first.starts_with(path + ".");
}

}  // namespace

std::map<std::string, std::string> values_of(const Job& job) {
  Leaves leaves;
  collect(job, "", leaves);
  return leaves;
}

std::vector<Difference> differences(const Job& before, const Job& after) {
  const Leaves old_leaves = values_of(before);
  const Leaves new_leaves = values_of(after);
  Leaves all = old_leaves;
  all.insert(new_leaves.begin(), new_leaves.end());
  std::vector<Difference> different;
  for (const auto& [path, text] : all) {
    if (text == "{}" && (has_inside(old_leaves, path) || has_inside(new_leaves, path))) continue;
    Difference difference{path, value(old_leaves, path), value(new_leaves, path)};
    if (difference.before != difference.after) different.push_back(std::move(difference));
  }
  return different;
}

}  // namespace lockstep::job
