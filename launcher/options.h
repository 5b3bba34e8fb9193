// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "runtime/tensor/device.h"
#include "runtime/tensor/error.h"

namespace lockstep::launcher {

/// What the user asked for, ready to run. Throws Error.
using Action = std::function<ExitCode()>;

/// Which job, with which fields overridden.
struct JobOptions {
  std::string job;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);
  /// The options as a command line says them.
  std::vector<std::string> arguments() const;
};

/// An option that refuses an empty value, which a shell passes for an unset variable.
const CLI::Validator& not_empty();

/// Adds --set.
CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// Adds --checkpoint.
void add_checkpoint(CLI::App& command, std::string& checkpoint);

/// Adds --raw-weights.
void add_raw_weights(CLI::App& command, bool& raw_weights);

/// Adds --run-dir.
void add_run_dir(CLI::App& command, std::string& run_dir);

/// How many ranks, where, on what.
struct LaunchOptions {
  int nproc = 0;  ///< 0: not given
  std::string hosts;
  std::string device = "auto";
  int max_restarts = 0;

  /// `restarts`: whether the command can be started again.
  void add_to(CLI::App& command, bool restarts);
  /// Throws EnvironmentError for a device that this machine or build does not have.
  void require_device() const;
  /// This rank's: its own GPU of the node where there are any, or the CPU.
  Device device_of(int local_rank) const;
};

}  // namespace lockstep::launcher
