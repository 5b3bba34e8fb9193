// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/option_table.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

namespace lockstep::launcher {

namespace {

std::vector<std::string> split_words(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) words.push_back(word);
  return words;
}

bool is_literal(const std::string& word) {
  return !word.empty() && std::none_of(word.begin(), word.end(), [](unsigned char c) { return std::isupper(c) != 0; });
}

/// "PATH" and its like are what the options call a value that is a path.
ValueKind kind_of(const std::string& value) {
  if (value == "JOB") return ValueKind::kJob;
  if (value == "DIR") return ValueKind::kFolder;
  if (value == "PATH" || value == "FILE" || value == "RUN" || value.ends_with("CHECKPOINT")) return ValueKind::kPath;
  return ValueKind::kNone;
}

/// The words for what a check of CLI11 says of itself; empty for what says nothing of its own.
std::string limits_of(const std::string& check) {
  if (check == "NONNEGATIVE") return "0 or more";
  const std::size_t range = check.find(" in [");
  return range == std::string::npos ? std::string() : check.substr(range + 1);
}

bool is_check(const std::string& text) {
  return text.starts_with('{') || text.find(" in [") != std::string::npos ||
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c) != 0; });
}

/// CLI11 joins the value's name, which may have a colon of its own, and what its checks say: "TEXT:{auto,cpu,cuda}",
/// "INT:INT in [1 - 9]".
void read_type(const CLI::Option& option, OptionRow& row) {
  row.value = option.get_type_name();
  const std::size_t colon = row.value.rfind(':');
  if (colon != std::string::npos && is_check(row.value.substr(colon + 1))) {
    const std::string check = row.value.substr(colon + 1);
    row.value.resize(colon);
    row.limits = limits_of(check);
    if (check.starts_with('{')) row.choices = split_words(check.substr(1, check.size() - 2), ',');
  } else if (row.value.find('|') != std::string::npos) {
    for (const std::string& word : split_words(row.value, '|')) {
      if (is_literal(word)) row.choices.push_back(word);
    }
  }
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return names;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  row.description = option.get_description();
  row.required = option.get_required();
  row.needs = names_of(option.get_needs());
  row.excludes = names_of(option.get_excludes());
  if (option.get_items_expected_max() == 0) return row;
  read_type(option, row);
  row.repeats = option.get_items_expected_max() > 1;
  row.fallback = option.get_default_str();
  // For a positional argument, its name tells more than its type.
  if (row.is_argument() && !is_literal(option.get_name())) row.value = option.get_name();
  row.kind = kind_of(row.value);
  return row;
}

CommandRow command_of(const CLI::App& app) {
  CommandRow command{.name = app.get_name(), .description = app.get_description(), .rows = {}};
  for (const CLI::Option* option : app.get_options()) {
    // One without a group is for the program itself.
    if (!option->get_group().empty()) command.rows.push_back(row_of(*option));
  }
  return command;
}

}  // namespace

std::vector<CommandRow> option_table(const CLI::App& app) {
  std::vector<CommandRow> table{command_of(app)};
  for (const CLI::App* command : app.get_subcommands({})) table.push_back(command_of(*command));
  return table;
}

}  // namespace lockstep::launcher
