// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/path_fields.h"

#include <fmt/format.h>

#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/job/message_options.h"
#include "runtime/job/scalar.h"

namespace lockstep::job {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

/// Calls `visit` with each path of the field and its place in a list, -1 where it is none.
void for_each_path(const Message& message, const PathField& of,
                   const std::function<void(const FieldDescriptor&, int index)>& visit) {
  const FieldDescriptor& field = field_of(message, of.name);
  if (!field.is_repeated()) return visit(field, -1);
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) visit(field, i);
}

/// Says why `resolved` is no readable file or folder; empty where it is one.
std::string problem_of_file(const std::string& resolved, const std::string& written, bool folder) {
  const std::string shown = "\"" + written + "\"" + (written == resolved ? "" : " (" + resolved + ")");
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(resolved, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    return std::string(kMissing) + (folder ? "folder: " : "file: ") + shown;
  }
  if (folder && status.type() != std::filesystem::file_type::directory && std::filesystem::exists(status)) {
    return "is no folder: " + shown;
  }
  if (!folder && status.type() == std::filesystem::file_type::directory) {
    return "is a directory, not a file: " + shown;
  }
  if (!std::filesystem::exists(status)) {
    return "cannot be reached: " + shown + ": " + failure.message();
  }
  if (!folder && status.type() != std::filesystem::file_type::regular) {
    return "is no regular file: " + shown;
  }
  return "";
}

/// Thousands of files that are not there have one cause, most often: the first is named, and the others counted.
std::string problem_of_pattern(const std::string& resolved, const std::string& written) {
  std::vector<std::string> files;
  try {
    files = data::expand_braces(resolved);
  } catch (const UsageError&) {
    return "";  // which is for the options to name
  }
  std::string first;
  std::size_t wrong = 0;
  for (const std::string& file : files) {
    std::string problem = problem_of_file(file, files.size() == 1 ? written : file, false);
    if (!problem.empty() && ++wrong == 1) first = std::move(problem);
  }
  if (wrong > 1) first += fmt::format("; {} of its {} files cannot be read", wrong, files.size());
  return first;
}

}  // namespace

void make_absolute(std::string& path, const std::filesystem::path& folder) {
  if (!path.empty()) path = std::filesystem::absolute(folder / path).lexically_normal().string();
}

void make_absolute(Message& message, const std::vector<PathField>& fields, const std::filesystem::path& folder) {
  for (const PathField& of : fields) {
    // Braces are for what the job says, and not for the folder that it lies in.
    const bool pattern = of.names == Names::kFilePattern;
    const std::filesystem::path from = pattern ? std::filesystem::path(data::literal_pattern(folder.string())) : folder;
    for_each_path(message, of, [&](const FieldDescriptor& field, int index) {
      std::string path = text_in(message, field, index);
      make_absolute(path, from);
      if (index < 0) {
        if (!path.empty()) message.GetReflection()->SetString(&message, &field, path);
      } else {
        message.GetReflection()->SetRepeatedString(&message, &field, index, path);
      }
    });
  }
}

void check_paths(const Message& resolved, const Message& written, const std::vector<PathField>& fields,
                 const std::string& path, Checker& checker) {
  for (const PathField& of : fields) {
    for_each_path(resolved, of, [&](const FieldDescriptor& field, int index) {
      const std::string file = text_in(resolved, field, index);
      if (file.empty()) return;
      const std::string said = text_in(written, field, index);
      const std::string name = join_path(path, field.name());
      const std::string at = index < 0 ? name : element_path(name, index);
      const std::string problem = of.names == Names::kFilePattern
                                      ? problem_of_pattern(file, said)
                                      : problem_of_file(file, said, of.names == Names::kFolder);
      if (!problem.empty()) checker.error(at, problem);
      // A checkpoint holds the resolved job.
      if (!is_clean_utf8(file)) checker.error(at, "must lie in a folder whose name is UTF-8 text");
    });
  }
}

}  // namespace lockstep::job
