// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/option_fields.h"
#include "runtime/job/checker.h"

// The fields of a message that name files or folders, known from the options that stand for it.
namespace lockstep::job {

struct PathField {
  std::string_view name;
  Names names;
};

template <Described Options>
std::vector<PathField> path_fields() {
  std::vector<PathField> fields;
  for_each_field<Options>([&fields](const auto& field) {
    if (field.names != Names::kNothing) fields.push_back({field.name, field.names});
  });
  return fields;
}

/// Makes the paths in these fields absolute. Relative ones start at `folder`.
void make_absolute(google::protobuf::Message& message, const std::vector<PathField>& fields,
                   const std::filesystem::path& folder);
/// Makes one path absolute. An empty path stays empty.
void make_absolute(std::string& path, const std::filesystem::path& folder);

/// Reports what of the paths that `resolved` gives is not there or not of its kind. `written` is the message as the job
/// has it, for messages.
void check_paths(const google::protobuf::Message& resolved, const google::protobuf::Message& written,
                 const std::vector<PathField>& fields, const std::string& path, Checker& checker);

}  // namespace lockstep::job
