// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/command_line.h"

#include <lockstep/version.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "launcher/commands/commands.h"
#include "launcher/commands/foreign_options.h"
#include "launcher/supervisor/error_block.h"
#include "runtime/base/nearest.h"
#include "runtime/base/program_name.h"

namespace lockstep::launcher {

namespace {

/// The command that the user was writing when the error came.
std::string help_for(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return program_name() + " " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") + "--help";
}

/// The first argument that is none of the command's options but looks like one; empty where there is none.
std::string unknown_option(const CLI::App& command, int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string option = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (option.starts_with("--") && command.get_option_no_throw(option) == nullptr) return option;
  }
  return {};
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// The advice for an option that does not exist: what is here for one of other programs, or a similar name.
std::string instead_of(const std::string& option, const CLI::App& app, const CLI::App& command, int argc,
                       const char* const* argv) {
  const std::string foreign = instead_of_foreign(option, command, {argv, static_cast<std::size_t>(argc)});
  return foreign.empty() ? suggestion(option, option_names(command), help_for(app) + " lists them") : foreign;
}

/// "PATH=VALUE" where the command line has --set PATH VALUE, or PATH = VALUE; empty where it does not.
std::string parted_assignment(int argc, const char* const* argv) {
  for (int i = 1; i + 2 < argc; ++i) {
    if (std::string_view(argv[i]) != "--set") continue;
    std::string path = argv[i + 1];
    std::string_view rest = argv[i + 2];
    if (rest == "=" && i + 3 < argc) rest = argv[i + 3];
    const std::size_t equals = path.find('=');
    if (equals < path.size() - 1 || rest.starts_with("--")) continue;
    path.resize(std::min(equals, path.size()));
    return path + "=" + std::string(rest.substr(rest.starts_with('=') ? 1 : 0));
  }
  return {};
}

/// The errors of the command line; an unknown name comes before the errors that follow from it.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string option = unknown_option(command, argc, argv);
  if (!option.empty()) return "there is no option " + option + "; " + instead_of(option, app, command, argc, argv);
  const bool names_a_command = argc > 1 && argv[1][0] != '-';
  if (chosen.empty() && names_a_command) {
    return "there is no command \"" + std::string(argv[1]) + "\"; " +
           suggestion(argv[1], command_names(app), help_for(app) + " lists them");
  }
  const std::string assignment = parted_assignment(argc, argv);
  if (!assignment.empty()) return "--set takes PATH=VALUE: write --set " + assignment;
  return error.what();
}

/// Returns an empty action where help or the version was all that was asked for.
Action parse(int argc, const char* const* argv) {
  Action chosen;
  CLI::App app("Data-parallel mixed-precision training of a job on one or many ranks.", program_name());
  app.set_version_flag("--version", std::string("lockstep ") + kVersion + (kWithCuda ? "+cuda" : ""));
  app.require_subcommand(1);
  add_init(app, chosen);
  add_train(app, chosen);
  add_eval(app, chosen);
  add_infer(app, chosen);
  add_export(app, chosen);
  add_validate(app, chosen);
  add_find_lr(app, chosen);
  add_inspect(app, chosen);
  add_runs(app, chosen);
  add_watch(app, chosen);
  add_report(app, chosen);
  add_sweep(app, chosen);
  add_launch(app, chosen);
  add_bench(app, chosen);
  add_doctor(app, chosen);
  add_completion(app, chosen);
  add_man(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw UsageError(explain(app, error, argc, argv), "See " + help_for(app) + ".");
  }
  return chosen;
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  try {
    const Action action = parse(argc, argv);
    return action ? static_cast<int>(action()) : 0;
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    give_way(error, false);
    return report(error);
  }
}

}  // namespace lockstep::launcher
