// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <lockstep/version.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "launcher/commands/option_table.h"
#include "runtime/base/error.h"

namespace lockstep::launcher {

namespace {

constexpr std::pair<ExitCode, const char*> kExitStatus[] = {
    {ExitCode::kDone, "done"},
    {ExitCode::kUsage, "wrong command line, job or model"},
    {ExitCode::kEnvironment, "the machine lacks something: a device, a library, threads"},
    {ExitCode::kStorage, "storage: unreadable data, full disk, damaged checkpoint, a disk that does not answer"},
    {ExitCode::kNumerics, "numerics: NaN loss, collapsed loss scale"},
    {ExitCode::kMemory, "out of memory; the error says how much was asked for, what is free, and who holds the most"},
    {ExitCode::kPeerLost, "a rank died, hung or disagrees"},
    {ExitCode::kPreempted, "saved on a signal or by --until: run the same command again to resume"},
};

/// Text as troff reads it: a hyphen that is typed, a backslash, and a line that begins with a control character.
std::string troff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else if (c == '\n') {
      escaped += ' ';
    } else {
      escaped += c;
    }
  }
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + troff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + troff(text) + "\\fR"; }

/// Words between bars, where a line may break.
std::string value_of(const OptionRow& row) {
  const bool named = row.choices.empty() || row.value.find('|') != std::string::npos;
  std::string value = italic(named ? row.value : fmt::format("{}", fmt::join(row.choices, "|")));
  for (std::size_t at = 0; (at = value.find('|', at)) != std::string::npos; at += 3) value.insert(at + 1, "\\:");
  return value;
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (!text.starts_with("fp") && !text.starts_with("auto:")) {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text.ends_with('.') ? text : text + ".";
}

/// The description, then limits, default and companions as CLI11 knows them.
std::string meaning(const OptionRow& row) {
  std::string text = sentence(row.description);
  if (!row.limits.empty()) text += " Must be " + row.limits + ".";
  if (!row.fallback.empty()) text += " Default: " + row.fallback + ".";
  if (row.repeats) text += row.is_argument() ? " May be several." : " May be given more than once.";
  if (!row.needs.empty()) text += fmt::format(" Only with {}.", fmt::join(row.needs, ", "));
  if (!row.excludes.empty()) text += fmt::format(" Not with {}.", fmt::join(row.excludes, ", "));
  return text;
}

std::string entry(const OptionRow& row) {
  std::vector<std::string> names;
  for (const std::string& name : row.names) names.push_back(bold(name));
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  if (!row.value.empty()) head += (head.empty() ? "" : " ") + value_of(row);
  return ".TP\n" + head + "\n" + troff(meaning(row)) + "\n";
}

std::string entries(const CommandRow& command, const char* title, bool arguments) {
  std::string text;
  for (const OptionRow& row : command.rows) {
    if (row.is_argument() == arguments) text += entry(row);
  }
  return text.empty() ? text : fmt::format(".SH {}\n{}", title, text);
}

std::string synopsis(const CommandRow& command) {
  std::string line = bold("lockstep " + command.name);
  for (const OptionRow& row : command.rows) {
    if (!row.is_argument()) continue;
    const std::string argument = value_of(row) + (row.repeats ? "..." : "");
    line += row.required ? " " + argument : " [" + argument + "]";
  }
  for (const OptionRow& row : command.rows) {
    if (row.is_argument()) continue;
    const std::string option = bold(row.names.back()) + (row.value.empty() ? "" : " " + value_of(row));
    line += (row.required ? "\n" + option : "\n[" + option + "]") + (row.repeats ? "..." : "");
  }
  return line + "\n";
}

std::string page_name(const std::string& command) { return command.empty() ? "lockstep" : "lockstep-" + command; }

std::string head(const std::string& command, const std::string& description) {
  std::string title = page_name(command);
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"Lockstep {}\" \"Lockstep\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n", troff(title),
                     kVersion, troff(page_name(command)), troff(description));
}

std::string exit_status() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, words] : kExitStatus) {
    text += fmt::format(".TP\n{}\n{}\n", static_cast<int>(code), troff(sentence(words)));
  }
  return text;
}

std::string commands(const std::vector<CommandRow>& table) {
  std::string text = ".SH COMMANDS\nEach has a page of its own.\n";
  for (std::size_t i = 1; i < table.size(); ++i) {
    text += fmt::format(".TP\n{}(1)\n{}\n", bold(page_name(table[i].name)), troff(sentence(table[i].description)));
  }
  return text;
}

}  // namespace

std::string manual_page(const std::vector<CommandRow>& table, const std::string& command) {
  if (command.empty()) {
    std::string description = table.front().description;
    if (description.ends_with('.')) description.pop_back();
    description.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(description.front())));
    return head("", description) + ".SH SYNOPSIS\n" + bold("lockstep") + " " + italic("COMMAND") + " " + italic("...") +
           "\n" + commands(table) + entries(table.front(), "OPTIONS", false) + exit_status() +
           ".SH SEE ALSO\nThe pages of docs/ in Lockstep's folder of documentation, README.md first.\n";
  }
  const CommandRow& row = *std::find_if(table.begin() + 1, table.end(),
                                        [&](const CommandRow& candidate) { return candidate.name == command; });
  return head(command, row.description) + ".SH SYNOPSIS\n" + synopsis(row) + entries(row, "ARGUMENTS", true) +
         entries(row, "OPTIONS", false) + exit_status() + ".SH SEE ALSO\n" + bold("lockstep") + "(1)\n";
}

}  // namespace lockstep::launcher
