// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/train/infer/sliding_window.h"

namespace lockstep::launcher {

/// How windows slide over what a command predicts.
struct WindowOptions {
  double overlap = train::SlidingWindowOptions().overlap;
  std::string weights = "constant";

  /// `whole`: the option without which these mean nothing.
  void add_to(CLI::App& command, CLI::Option* whole);
  train::SlidingWindowOptions windows(Device device) const;
  /// The options as a rank's command line says them.
  std::vector<std::string> arguments() const;
};

}  // namespace lockstep::launcher
