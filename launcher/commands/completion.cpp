// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "launcher/commands/option_table.h"

namespace lockstep::launcher {

namespace {

/// Within single quotes, as bash and zsh read them.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "'";
}

std::string escaped(const std::string& text, const std::string& special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string words_of(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::string command_words(const std::vector<CommandRow>& table) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < table.size(); ++i) names.push_back(table[i].name);
  return words_of(names);
}

std::string option_words(const CommandRow& command) {
  std::vector<std::string> names;
  for (const OptionRow& row : command.rows) names.insert(names.end(), row.names.begin(), row.names.end());
  return words_of(names);
}

/// The code by which bash offers values: words, then files.
std::string bash_values(const OptionRow& row) {
  std::vector<std::string> offers;
  if (!row.choices.empty()) offers.push_back(fmt::format("_lockstep_words '{}'", words_of(row.choices)));
  if (row.kind == ValueKind::kPath) offers.emplace_back("_lockstep_files");
  if (row.kind == ValueKind::kFolder) offers.emplace_back("_lockstep_files -d");
  if (row.kind == ValueKind::kJob) offers.emplace_back("_lockstep_files -f -X '!*.pbtxt'; _lockstep_files -d");
  return offers.empty() ? ":" : fmt::format("{}", fmt::join(offers, "; "));
}

std::string zsh_values(const OptionRow& row) {
  const std::string words = words_of(row.choices);
  if (row.kind == ValueKind::kPath) {
    return row.choices.empty()
               ? "_files"
               : fmt::format("{{_alternative \"words\\:word\\:({})\" \"files\\:file\\:_files\"}}", words);
  }
  if (row.kind == ValueKind::kFolder) return "_files -/";
  if (row.kind == ValueKind::kJob) return "_files -g \"*.pbtxt\"";
  return row.choices.empty() ? " " : "(" + words + ")";
}

std::string zsh_specification(const OptionRow& row) {
  const std::string value = row.value.empty() ? "" : ":" + escaped(row.value, ":\\") + ":" + zsh_values(row);
  if (row.is_argument())
    return "      " + shell_quoted((row.repeats ? "*" : "") + (value.empty() ? ":" : value)) + " \\\n";
  std::string lines;
  for (const std::string& name : row.names) {
    lines += "      " +
             shell_quoted((row.repeats ? "*" : "") + name + "[" + escaped(row.description, "[]:\\") + "]" + value) +
             " \\\n";
  }
  return lines;
}

std::string fish_values(const OptionRow& row) {
  std::string offer;
  if (!row.choices.empty()) offer = " -a " + fish_quoted(words_of(row.choices));
  switch (row.kind) {
    case ValueKind::kPath:
      return " -r -F" + offer;
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kJob:
      return " -x -k -a '(__fish_complete_suffix .pbtxt)'";
    case ValueKind::kNone:
      return " -x" + offer;
  }
  return {};
}

std::string fish_lines(const CommandRow& command, const std::string& condition) {
  std::string lines;
  for (const OptionRow& row : command.rows) {
    if (row.is_argument()) {
      const std::string values = fish_values(row);
      // -r and -x apply to options alone. An argument takes -F for files and -a for words.
      if (row.kind == ValueKind::kPath) lines += fmt::format("complete -c lockstep -n '{}' -F\n", condition);
      const std::size_t offers = values.find("-a ");
      if (offers != std::string::npos) {
        lines += fmt::format("complete -c lockstep -n '{}' {}{}\n", condition, row.kind == ValueKind::kJob ? "-k " : "",
                             values.substr(offers));
      }
      continue;
    }
    std::string names;
    for (const std::string& name : row.names) {
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    lines += fmt::format("complete -c lockstep -n '{}'{}{} -d {}\n", condition, names,
                         row.value.empty() ? "" : fish_values(row), fish_quoted(row.description));
  }
  return lines;
}

}  // namespace

std::string bash_completion(const std::vector<CommandRow>& table) {
  std::string values;
  std::string rest;
  for (const CommandRow& command : table) {
    const std::string name = &command == &table.front() ? "" : command.name;
    std::string arguments = ":";
    for (const OptionRow& row : command.rows) {
      if (row.is_argument()) arguments = (arguments == ":" ? "" : arguments + "; ") + bash_values(row);
      if (row.is_argument() || row.value.empty()) continue;
      for (const std::string& option : row.names) {
        values += fmt::format("    '{} {}') {}; return ;;\n", name, option, bash_values(row));
      }
    }
    if (name.empty()) arguments = fmt::format("_lockstep_words '{}'", command_words(table));
    rest += fmt::format("    '{}')\n      if [[ $current == -* ]]; then _lockstep_words '{}'\n      else {}; fi ;;\n",
                        name, option_words(command), arguments);
  }
  return R"(# bash completion for lockstep, written by `lockstep completion bash`
_lockstep_words() {
  local word
  for word in $1; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done
}

_lockstep_files() {
  local path
  compopt -o filenames 2> /dev/null
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "${@:--f}" -- "$current")
}

_lockstep() {
  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command= i
  COMPREPLY=()
  # bash cuts --option=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
  done
  case "$command $option" in
)" + values +
         R"(  esac
  case $command in
)" + rest +
         R"(  esac
}

complete -F _lockstep lockstep
)";
}

std::string zsh_completion(const std::vector<CommandRow>& table) {
  std::string commands;
  std::string arguments;
  for (std::size_t i = 1; i < table.size(); ++i) {
    commands += "        " + shell_quoted(escaped(table[i].name, ":") + ":" + table[i].description) + "\n";
    arguments += fmt::format("    {})\n      _arguments -s \\\n", table[i].name);
    for (const OptionRow& row : table[i].rows) arguments += zsh_specification(row);
    arguments += "      && return 0 ;;\n";
  }
  std::string options;
  for (const OptionRow& row : table.front().rows) options += zsh_specification(row);
  return R"(#compdef lockstep
# zsh completion for lockstep, written by `lockstep completion zsh`
_lockstep() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \
)" + options +
         R"(      '1: :->command' '*:: :->arguments' && return 0
  if [[ $state == command ]]; then
    local -a commands
    commands=(
)" + commands +
         R"(    )
    _describe command commands
    return
  fi
  case $line[1] in
)" + arguments +
         R"(  esac
}

if [[ $funcstack[1] == _lockstep ]]; then _lockstep "$@"; else compdef _lockstep lockstep; fi
)";
}

std::string fish_completion(const std::vector<CommandRow>& table) {
  std::string text = "# fish completion for lockstep, written by `lockstep completion fish`\ncomplete -c lockstep -f\n";
  for (std::size_t i = 1; i < table.size(); ++i) {
    text += fmt::format("complete -c lockstep -n __fish_use_subcommand -a {} -d {}\n", table[i].name,
                        fish_quoted(table[i].description));
  }
  text += fish_lines(table.front(), "__fish_use_subcommand");
  for (std::size_t i = 1; i < table.size(); ++i) {
    text += fish_lines(table[i], "__fish_seen_subcommand_from " + table[i].name);
  }
  return text;
}

}  // namespace lockstep::launcher
