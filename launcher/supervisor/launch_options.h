// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/tensor/device.h"

namespace lockstep::launcher {

/// How many ranks, where, on what.
struct LaunchOptions {
  int nproc = 0;  ///< 0: not given
  std::string hosts;
  std::string interface;  ///< as --interface was given, which sets LOCKSTEP_INTERFACE
  std::string transport;  ///< as --transport was given, which sets LOCKSTEP_TRANSPORT
  std::string device = "auto";
  bool verbose = false;  ///< prints mpirun's own words where it cannot start the ranks
  int max_restarts = 0;

  /// `restarts`: whether the command can be started again.
  void add_to(CLI::App& command, bool restarts);
  /// Throws EnvironmentError for a device that this machine or build does not have.
  void require_device() const;
  /// The device of the node's rank `local_rank`: a GPU, of which the ranks take turns, or the CPU where there is none.
  Device device_of(int local_rank) const;
};

/// Adds --interface, which sets LOCKSTEP_INTERFACE (comm/group/network_choice.h) for this process and its ranks.
CLI::Option* add_interface(CLI::App& command, std::string& interface);

/// Refuses an empty value, which a shell passes for an unset variable.
const CLI::Validator& not_empty();

}  // namespace lockstep::launcher
