// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::launcher {

/// The user's command, ready to run. Throws Error.
using Action = std::function<ExitCode()>;

/// Which job, with which fields overridden.
struct JobOptions {
  std::string job;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);
  /// The options as a command line says them.
  std::vector<std::string> arguments() const;
};

/// Adds --set.
CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// Adds --run-dir.
void add_run_dir(CLI::App& command, std::string& run_dir);

}  // namespace lockstep::launcher
