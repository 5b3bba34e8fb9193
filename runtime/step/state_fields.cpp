// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/state_fields.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>
#include <lockstep/version.h>

#include <algorithm>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/base/field_path.h"
#include "runtime/checkpoint/checkpoint.h"

namespace lockstep::step {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

/// Calls visit(message, path) for a message and those in it, all but jobs, which resuming does not read.
void for_each_message(const Message& message, const std::string& path,
                      const std::function<void(const Message&, const std::string&)>& visit) {
  if (message.GetDescriptor() == job::Job::descriptor()) return;
  visit(message, path);
  std::vector<const FieldDescriptor*> fields;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    const std::string name = join_path(path, field->name());
    if (!field->is_repeated()) {
      for_each_message(reflection.GetMessage(message, field), name, visit);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      for_each_message(reflection.GetRepeatedMessage(message, field, i), element_path(name, i), visit);
    }
  }
}

/// Whether every state like this one has the optional field `path`. A field that a later version adds belongs to a
/// later format, and is asked of states from that one on.
bool is_expected(const FieldDescriptor& field, const std::string& path, const checkpoint::TrainingState& state) {
  const bool is_of_format_2 = state.format() >= 2;
  if (field.containing_type() == checkpoint::MetricState::descriptor()) return is_of_format_2;
  if (field.containing_type() == checkpoint::PlateauState::descriptor()) return is_of_format_2;
  if (path == "evaluated_step") {
    return is_of_format_2 && (state.has_best() || state.has_early_stopping() || state.has_reduce_on_plateau());
  }
  // A loop without a job may take its samples in an order that no seed names.
  if (path == "sampler.seed") return is_of_format_2 && state.has_job();
  return state.format() >= 1;
}

}  // namespace

void require_complete(const checkpoint::Checkpoint& saved) {
  std::vector<std::string> lacking;
  if (saved.state.schedule_size() != saved.state.optimizer_size()) lacking.emplace_back("a schedule of each optimizer");
  // A state of format 0 leaves out what is 0.
  if (saved.state.format() > 0 && !saved.state.has_sampler()) lacking.emplace_back("sampler");
  for_each_message(saved.state, "", [&](const Message& message, const std::string& path) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      const std::string name = join_path(path, field.name());
      if (!field.has_optional_keyword() || !is_expected(field, name, saved.state)) continue;
      if (!message.GetReflection()->HasField(message, &field)) lacking.push_back(name);
    }
  });
  refuse_lacking(saved, lacking);
}

void refuse_lacking(const checkpoint::Checkpoint& saved, const std::vector<std::string>& lacking) {
  if (lacking.empty()) return;
  throw StorageError(fmt::format("{} lacks {}; lockstep {} saved it, this is {}", saved.path, fmt::join(lacking, ", "),
                                 saved.state.lockstep_version(), kVersion),
                     "Resume with the version that saved it, or start anew with --resume never.");
}

std::vector<std::string> unknown_fields(const checkpoint::TrainingState& state) {
  std::vector<std::string> names;
  for_each_message(state, "", [&](const Message& message, const std::string& path) {
    const google::protobuf::UnknownFieldSet& unknown = message.GetReflection()->GetUnknownFields(message);
    for (int i = 0; i < unknown.field_count(); ++i) {
      // One that was removed is known, and needed no more.
      if (message.GetDescriptor()->IsReservedNumber(unknown.field(i).number())) continue;
      const std::string name = join_path(path, fmt::format("field {}", unknown.field(i).number()));
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  });
  return names;
}

}  // namespace lockstep::step
