// SPDX-License-Identifier: Apache-2.0
#include "launcher/command_line.h"

#include <cstdio>

#include "launcher/command_doctor.h"
#include "launcher/command_eval.h"
#include "launcher/command_inspect.h"
#include "launcher/command_train.h"
#include "launcher/command_validate.h"
#include "launcher/error_block.h"

namespace lockstep::launcher {

namespace {

/// The command that the user was writing when the error came.
std::string help_for(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return "lockstep " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") + "--help";
}

/// Returns an empty action where help or the version was all that was asked for.
Action parse(int argc, const char* const* argv) {
  Action chosen;
  CLI::App app("Data-parallel mixed-precision training of a job on one or many ranks.", "lockstep");
  app.set_version_flag("--version", std::string("lockstep ") + LOCKSTEP_VERSION);
  app.require_subcommand(1);
  add_train(app, chosen);
  add_eval(app, chosen);
  add_validate(app, chosen);
  add_inspect(app, chosen);
  add_doctor(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what(), "See " + help_for(app) + ".");
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
