// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// The values that a shell may offer.
enum class ValueKind { kNone, kPath, kFolder, kJob };

/// An option or an argument of a command, as CLI11 knows it.
struct OptionRow {
  std::vector<std::string> names;  ///< with their dashes; none of an argument, which goes by its place
  std::string value;               ///< the name of its value; empty: it takes none
  std::string limits;              ///< what a value must be, for example "in [1 - 9]"
  std::string fallback;            ///< the default, where the option has one
  std::string description;
  std::vector<std::string> choices;  ///< words that its value may be
  ValueKind kind = ValueKind::kNone;
  bool required = false;
  bool repeats = false;  ///< may be given more than once
  std::vector<std::string> needs, excludes;

  bool is_argument() const { return names.empty(); }
};

/// A command with all that it takes. Manual pages and completions are made of these, so they never lack an option.
struct CommandRow {
  std::string name;
  std::string description;
  std::vector<OptionRow> rows;
};

/// The program itself, with its own options, and behind it each of its commands.
std::vector<CommandRow> option_table(const CLI::App& app);

/// A manual page as troff: that of the command named, lockstep-train(1) for "train", or of the program, lockstep(1),
/// for an empty name. `table` must hold the command.
std::string manual_page(const std::vector<CommandRow>& table, const std::string& command);

// A script that has the shell complete commands, options, words that a value may be, and files. It asks the program
// nothing, so that it answers at once.

std::string bash_completion(const std::vector<CommandRow>& table);
std::string zsh_completion(const std::vector<CommandRow>& table);
std::string fish_completion(const std::vector<CommandRow>& table);

}  // namespace lockstep::launcher
