// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/job.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/program_name.h"
#include "runtime/job/data_note.h"
#include "runtime/job/defaults.h"
#include "runtime/job/foreign_format.h"
#include "runtime/job/job_text.h"
#include "runtime/job/message_options.h"
#include "runtime/job/overrides.h"
#include "runtime/job/text_reader.h"
#include "runtime/job/tokens.h"
#include "runtime/job/validate.h"

namespace lockstep::job {

namespace {

/// The mark that some editors put before UTF-8 text.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

Checked sound(Checked checked, const std::filesystem::path& file) {
  if (checked.diagnostics.empty()) return checked;
  // A text that nobody could read cannot be validated either.
  const bool read = checked.locations.contains("");
  const std::string note = checked.data_note.empty() ? "" : checked.data_note + "\n";
  throw UsageError(str(checked.diagnostics),
                   read ? note + "Correct the job, then check it with: " + program_name() + " validate " + file.string()
                        : "Name a job's file, *.pbtxt.");
}

}  // namespace

Checked check(const std::filesystem::path& file, std::span<const std::string> overrides) {
  std::string text;
  try {
    // One byte more than a job may have: enough for the reader to see that it is too long.
    text = read_job_text(file, kMaxJobBytes + 1);
  } catch (const StorageError& error) {
    Checked unread;
    unread.diagnostics.emplace_back(Position{file.string()}, "", std::string("cannot read the job: ") + error.what());
    return unread;
  }
  return check_text(text, file, overrides, std::filesystem::absolute(file).parent_path());
}

Checked check_text(std::string_view text, const std::filesystem::path& file, std::span<const std::string> overrides,
                   const std::filesystem::path& folder) {
  Checked checked;
  Locations& locations = checked.locations;
  locations.record("", {file.string()});
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  TextReader reader(text, file.string(), locations, checked.diagnostics);
  reader.read_message(checked.job, "");
  if (const std::string_view format = checked.diagnostics.empty() ? "" : foreign_format(text); !format.empty()) {
    checked.diagnostics.clear();
    checked.diagnostics.emplace_back(
        Position{file.string()}, "",
        "is " + std::string(format) + "; a job is protobuf text, as in: name: \"first\" train { steps: 600 }");
    return checked;
  }
  for (const std::string& assignment : overrides) {
    apply_override(checked.job, assignment, locations, checked.diagnostics);
  }
  // The meaning of the values is guesswork where braces do not match.
  if (reader.broken()) return checked;
  const Job written = checked.job;
  fill_defaults(checked.job, file, folder);
  validate(checked.job, written, locations, checked.diagnostics);
  const auto is_missing = [](const Diagnostic& found) { return found.message.starts_with(kMissing); };
  if (std::ranges::any_of(checked.diagnostics, is_missing)) checked.data_note = data_note(text);
  return checked;
}

Checked load_checked(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return sound(check(file, overrides), file);
}

Job load(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return load_checked(file, overrides).job;
}

Job load_text(std::string_view text, const std::filesystem::path& file, std::span<const std::string> overrides,
              const std::filesystem::path& folder) {
  return sound(check_text(text, file, overrides, folder), file).job;
}

namespace {

/// The kind of data set that an override of data.eval names, "csv" of "data.eval.csv.files=..."; empty for others.
std::string eval_kind(std::string_view override_text) {
  constexpr std::string_view kPath = "data.eval.";
  if (!override_text.starts_with(kPath)) return {};
  override_text.remove_prefix(kPath.size());
  return std::string(override_text.substr(0, override_text.find_first_of(".=[")));
}

/// Makes evaluation data that overrides are to name like the training data, where they are of the same kind.
void take_training_data(Job& job, std::span<const std::string> overrides) {
  for (const std::string& text : overrides) {
    Data& data = *job.mutable_data();
    if (text.starts_with("data.eval=")) data.clear_eval_share();
    const std::string kind = eval_kind(text);
    if (kind.empty()) continue;
    data.clear_eval_share();
    const google::protobuf::FieldDescriptor* const trained = kind_of(data.train());
    if (trained == nullptr || trained->name() != kind) continue;
    if (kind_of(data.eval()) != trained) *data.mutable_eval() = data.train();
    if (kind == "tokens" && text.starts_with("data.eval.tokens.files")) {
      data.mutable_eval()->mutable_tokens()->clear_begin();
      data.mutable_eval()->mutable_tokens()->clear_end();
    }
  }
}

}  // namespace

Checked load_trained(const Job& trained, const std::filesystem::path& run, std::span<const std::string> overrides) {
  Job job = trained;
  job.clear_init_from();
  job.clear_fault();
  take_training_data(job, overrides);
  Checked checked = check_text(to_text(job), run, overrides, std::filesystem::current_path());
  std::erase_if(checked.diagnostics, [&run](const Diagnostic& found) {
    return found.message.starts_with(kMissing) && found.position.source == run.string();
  });
  if (checked.diagnostics.empty()) return checked;
  throw UsageError(str(checked.diagnostics), "Correct what --set says of the run's job.");
}

std::string to_text(const Job& job) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(job, &text);
  return text;
}

std::string hash(const Job& job) {
  Job trained = job;
  trained.clear_fault();
  return hash128_of(to_text(trained));
}

}  // namespace lockstep::job
