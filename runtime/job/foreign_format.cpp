// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/foreign_format.h"

#include <algorithm>

namespace lockstep::job {

namespace {

constexpr std::string_view kBlanks = " \t\r";

/// Takes the next line that is neither empty nor a comment, without the blanks behind it. False at the end.
bool take_line(std::string_view& text, std::string_view& line) {
  while (!text.empty()) {
    line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    return true;
  }
  return false;
}

std::size_t indentation(std::string_view line) { return line.find_first_not_of(kBlanks); }

/// An object with a quoted key, or without any; a list of objects or texts.
bool begins_json(std::string_view text) {
  const std::size_t second = text.find_first_not_of(" \t\r\n", 1);
  const char next = second == std::string_view::npos ? '\0' : text[second];
  return (text.front() == '{' && (next == '"' || next == '}')) || (text.front() == '[' && (next == '{' || next == '"'));
}

/// "key:" or "key: value" or "- item", as it stands below a key of YAML. A job has a brace, a quote or a number there.
bool is_below_a_key(std::string_view line) {
  line.remove_prefix(indentation(line));
  if (line.starts_with("- ")) return true;
  const std::size_t colon = line.find(':');
  return colon != 0 && colon != std::string_view::npos && line.find_first_of("{[\"'") > colon;
}

}  // namespace

std::string_view foreign_format(std::string_view text) {
  std::string_view line;
  const std::string_view all = text;
  if (!take_line(text, line)) return {};
  if (begins_json(all.substr(static_cast<std::size_t>(line.data() - all.data()) + indentation(line)))) return "JSON";
  if (line == "---") return "YAML";
  for (std::string_view next; take_line(text, next); line = next) {
    if (line.ends_with(':') && indentation(next) > indentation(line) && is_below_a_key(next)) return "YAML";
  }
  return {};
}

}  // namespace lockstep::job
